//! Tango's interfaces, release by release: each operation notes itself in the black box, and calls the device.

use rtorb::SystemException;
use rtorb::any::Any;

use crate::black_box::described;
use crate::class::Model;
use crate::conversions::{joined, older, older_or_failed};
use crate::device::{Device, fixed_configuration, no_pipe, not_polled};
use crate::tango::*;

impl<M: Model> Device<M> {
    fn note(&self, operation: &str) {
        self.black_box
            .note(&format!("Operation {operation} requested"));
    }

    fn note_names(
        &self,
        operation: &str,
        names: &str,
        source: Option<DevSource>,
        client: Option<&ClntIdent>,
    ) {
        self.black_box
            .note(&described(operation, names, source, client));
    }

    fn note_attribute(&self, attribute: &str) {
        self.black_box
            .note(&format!("Attribute {attribute} requested"));
    }
}

impl<M: Model> DeviceServant for Device<M> {
    fn name(&self) -> Result<String, SystemException> {
        self.note_attribute("name");
        Ok(self.name.clone())
    }

    fn description(&self) -> Result<String, SystemException> {
        self.note_attribute("description");
        Ok(self.class.description.clone())
    }

    fn state(&self) -> Result<DevState, SystemException> {
        self.note_attribute("state");
        Ok(self.model.state())
    }

    fn status(&self) -> Result<String, SystemException> {
        self.note_attribute("status");
        Ok(self.model.status())
    }

    fn adm_name(&self) -> Result<String, SystemException> {
        self.note_attribute("adm_name");
        Ok(self.identity.admin_name())
    }

    fn command_inout(&self, command: &str, argin: &Any) -> Result<Any, DeviceCommandInoutError> {
        self.note_names("command_inout", command, None, None);
        Ok(self.execute(command, argin)?)
    }

    fn get_attribute_config(
        &self,
        names: &[String],
    ) -> Result<AttributeConfigList, DeviceGetAttributeConfigError> {
        self.note("get_attribute_config");
        Ok(older(self.configs(names)?))
    }

    fn set_attribute_config(
        &self,
        _: &[AttributeConfig],
    ) -> Result<(), DeviceSetAttributeConfigError> {
        self.note("set_attribute_config");
        Err(fixed_configuration().into())
    }

    fn read_attributes(
        &self,
        names: &[String],
    ) -> Result<AttributeValueList, DeviceReadAttributesError> {
        self.note_names("read_attributes", &names.join(", "), None, None);
        Ok(older_or_failed(self.read(names)?)?)
    }

    fn write_attributes(
        &self,
        values: &[AttributeValue],
    ) -> Result<(), DeviceWriteAttributesError> {
        self.note_names(
            "write_attributes",
            &list(values.iter().map(|it| &it.name)),
            None,
            None,
        );
        Ok(self.write(of_anys(values)).map_err(joined)?)
    }

    fn ping(&self) -> Result<(), DevicePingError> {
        self.note("ping");
        Ok(())
    }

    fn black_box(&self, n: i32) -> Result<DevVarStringArray, DeviceBlackBoxError> {
        let last = self.black_box.last(n);
        self.note("black_box");
        Ok(last?)
    }

    fn info(&self) -> Result<DevInfo, DeviceInfoError> {
        self.note("info");
        Ok(Self::info(self).into())
    }

    fn command_list_query(&self) -> Result<DevCmdInfoList, DeviceCommandListQueryError> {
        self.note("command_list_query");
        Ok(older(self.commands()))
    }

    fn command_query(&self, command: &str) -> Result<DevCmdInfo, DeviceCommandQueryError> {
        self.note("command_query");
        Ok(self.command(command)?.into())
    }
}

impl<M: Model> Device2Servant for Device<M> {
    fn command_inout_2(
        &self,
        command: &str,
        argin: &Any,
        source: DevSource,
    ) -> Result<Any, Device2CommandInout2Error> {
        self.note_names("command_inout_2", command, Some(source), None);
        Ok(self.execute(command, argin)?)
    }

    fn read_attributes_2(
        &self,
        names: &[String],
        source: DevSource,
    ) -> Result<AttributeValueList, Device2ReadAttributes2Error> {
        self.note_names("read_attributes_2", &names.join(", "), Some(source), None);
        Ok(older_or_failed(self.read(names)?)?)
    }

    fn get_attribute_config_2(
        &self,
        names: &[String],
    ) -> Result<AttributeConfigList2, Device2GetAttributeConfig2Error> {
        self.note("get_attribute_config_2");
        Ok(older(self.configs(names)?))
    }

    fn command_list_query_2(&self) -> Result<DevCmdInfoList2, Device2CommandListQuery2Error> {
        self.note("command_list_query_2");
        Ok(self.commands())
    }

    fn command_query_2(&self, command: &str) -> Result<DevCmdInfo2, Device2CommandQuery2Error> {
        self.note("command_query_2");
        Ok(self.command(command)?)
    }

    fn command_inout_history_2(
        &self,
        command: &str,
        _: i32,
    ) -> Result<DevCmdHistoryList, Device2CommandInoutHistory2Error> {
        self.note("command_inout_history_2");
        Err(command_not_polled(command).into())
    }

    fn read_attribute_history_2(
        &self,
        name: &str,
        _: i32,
    ) -> Result<DevAttrHistoryList, Device2ReadAttributeHistory2Error> {
        self.note("read_attribute_history_2");
        Err(attribute_not_polled(name).into())
    }
}

impl<M: Model> Device3Servant for Device<M> {
    fn read_attributes_3(
        &self,
        names: &[String],
        source: DevSource,
    ) -> Result<AttributeValueList3, Device3ReadAttributes3Error> {
        self.note_names("read_attributes_3", &names.join(", "), Some(source), None);
        Ok(older_or_failed(self.read(names)?)?)
    }

    fn write_attributes_3(
        &self,
        values: &[AttributeValue],
    ) -> Result<(), Device3WriteAttributes3Error> {
        self.note_names(
            "write_attributes_3",
            &list(values.iter().map(|it| &it.name)),
            None,
            None,
        );
        Ok(self.write(of_anys(values))?)
    }

    fn read_attribute_history_3(
        &self,
        name: &str,
        _: i32,
    ) -> Result<DevAttrHistoryList3, Device3ReadAttributeHistory3Error> {
        self.note("read_attribute_history_3");
        Err(attribute_not_polled(name).into())
    }

    fn info_3(&self) -> Result<DevInfo3, Device3Info3Error> {
        self.note("info_3");
        Ok(Self::info(self))
    }

    fn get_attribute_config_3(
        &self,
        names: &[String],
    ) -> Result<AttributeConfigList3, Device3GetAttributeConfig3Error> {
        self.note("get_attribute_config_3");
        Ok(older(self.configs(names)?))
    }

    fn set_attribute_config_3(
        &self,
        _: &[AttributeConfig3],
    ) -> Result<(), Device3SetAttributeConfig3Error> {
        self.note("set_attribute_config_3");
        Err(fixed_configuration().into())
    }
}

impl<M: Model> Device4Servant for Device<M> {
    fn read_attribute_history_4(
        &self,
        name: &str,
        _: i32,
    ) -> Result<DevAttrHistory4, Device4ReadAttributeHistory4Error> {
        self.note("read_attribute_history_4");
        Err(attribute_not_polled(name).into())
    }

    fn command_inout_history_4(
        &self,
        command: &str,
        _: i32,
    ) -> Result<DevCmdHistory4, Device4CommandInoutHistory4Error> {
        self.note("command_inout_history_4");
        Err(command_not_polled(command).into())
    }

    fn command_inout_4(
        &self,
        command: &str,
        argin: &Any,
        source: DevSource,
        cl_ident: &ClntIdent,
    ) -> Result<Any, Device4CommandInout4Error> {
        let cmd = format!("cmd = {command}");
        self.note_names("command_inout_4", &cmd, Some(source), Some(cl_ident));
        Ok(self.execute(command, argin)?)
    }

    fn read_attributes_4(
        &self,
        names: &[String],
        source: DevSource,
        cl_ident: &ClntIdent,
    ) -> Result<AttributeValueList4, Device4ReadAttributes4Error> {
        let joined = names.join(", ");
        self.note_names("read_attributes_4", &joined, Some(source), Some(cl_ident));
        Ok(older(self.read(names)?))
    }

    fn write_attributes_4(
        &self,
        values: &[AttributeValue4],
        cl_ident: &ClntIdent,
    ) -> Result<(), Device4WriteAttributes4Error> {
        let names = list(values.iter().map(|it| &it.name));
        self.note_names("write_attributes_4", &names, None, Some(cl_ident));
        Ok(self.write(of_unions(values))?)
    }

    fn set_attribute_config_4(
        &self,
        _: &[AttributeConfig3],
        _: &ClntIdent,
    ) -> Result<(), Device4SetAttributeConfig4Error> {
        self.note("set_attribute_config_4");
        Err(fixed_configuration().into())
    }

    fn write_read_attributes_4(
        &self,
        values: &[AttributeValue4],
        cl_ident: &ClntIdent,
    ) -> Result<AttributeValueList4, Device4WriteReadAttributes4Error> {
        let names = list(values.iter().map(|it| &it.name));
        self.note_names("write_read_attributes_4", &names, None, Some(cl_ident));
        self.write(of_unions(values))?;
        let names: Vec<_> = values.iter().map(|value| value.name.clone()).collect();
        Ok(older(self.read(&names)?))
    }
}

impl<M: Model> Device5Servant for Device<M> {
    fn get_attribute_config_5(
        &self,
        names: &[String],
    ) -> Result<AttributeConfigList5, Device5GetAttributeConfig5Error> {
        self.note("get_attribute_config_5");
        Ok(self.configs(names)?)
    }

    fn set_attribute_config_5(
        &self,
        _: &[AttributeConfig5],
        _: &ClntIdent,
    ) -> Result<(), Device5SetAttributeConfig5Error> {
        self.note("set_attribute_config_5");
        Err(fixed_configuration().into())
    }

    fn read_attributes_5(
        &self,
        names: &[String],
        source: DevSource,
        cl_ident: &ClntIdent,
    ) -> Result<AttributeValueList5, Device5ReadAttributes5Error> {
        let joined = names.join(", ");
        self.note_names("read_attributes_5", &joined, Some(source), Some(cl_ident));
        Ok(self.read(names)?)
    }

    fn write_read_attributes_5(
        &self,
        values: &[AttributeValue4],
        r_names: &[String],
        cl_ident: &ClntIdent,
    ) -> Result<AttributeValueList5, Device5WriteReadAttributes5Error> {
        let names = list(values.iter().map(|it| &it.name));
        self.note_names("write_read_attributes_5", &names, None, Some(cl_ident));
        self.write(of_unions(values))?;
        Ok(self.read(r_names)?)
    }

    fn read_attribute_history_5(
        &self,
        name: &str,
        _: i32,
    ) -> Result<DevAttrHistory5, Device5ReadAttributeHistory5Error> {
        self.note("read_attribute_history_5");
        Err(attribute_not_polled(name).into())
    }

    fn get_pipe_config_5(
        &self,
        names: &[String],
    ) -> Result<PipeConfigList, Device5GetPipeConfig5Error> {
        self.note("get_pipe_config_5");
        Ok(self.pipes(names)?)
    }

    fn set_pipe_config_5(
        &self,
        new_conf: &[PipeConfig],
        _: &ClntIdent,
    ) -> Result<(), Device5SetPipeConfig5Error> {
        self.note("set_pipe_config_5");
        match new_conf.first() {
            None => Ok(()),
            Some(pipe) => Err(no_pipe(&pipe.name).into()),
        }
    }

    fn read_pipe_5(
        &self,
        name: &str,
        cl_ident: &ClntIdent,
    ) -> Result<DevPipeData, Device5ReadPipe5Error> {
        self.note_names("read_pipe_5", name, None, Some(cl_ident));
        Err(no_pipe(name).into())
    }

    fn write_pipe_5(
        &self,
        value: &DevPipeData,
        cl_ident: &ClntIdent,
    ) -> Result<(), Device5WritePipe5Error> {
        self.note_names("write_pipe_5", &value.name, None, Some(cl_ident));
        Err(no_pipe(&value.name).into())
    }

    fn write_read_pipe_5(
        &self,
        value: &DevPipeData,
        cl_ident: &ClntIdent,
    ) -> Result<DevPipeData, Device5WriteReadPipe5Error> {
        self.note_names("write_read_pipe_5", &value.name, None, Some(cl_ident));
        Err(no_pipe(&value.name).into())
    }
}

fn attribute_not_polled(name: &str) -> DevFailed {
    not_polled("API_AttrNotPolled", &format!("Attribute {name}"))
}

fn command_not_polled(name: &str) -> DevFailed {
    not_polled("API_CmdNotPolled", &format!("Command {name}"))
}

fn of_anys(values: &[AttributeValue]) -> impl Iterator<Item = (&str, Option<AttrValUnion>)> {
    values
        .iter()
        .map(|it| (it.name.as_str(), AttrValUnion::from_any(&it.value)))
}

fn of_unions(values: &[AttributeValue4]) -> impl Iterator<Item = (&str, Option<AttrValUnion>)> {
    values
        .iter()
        .map(|it| (it.name.as_str(), Some(it.value.clone())))
}

fn list<'v>(names: impl Iterator<Item = &'v String>) -> String {
    let names: Vec<_> = names.map(String::as_str).collect();
    names.join(", ")
}
