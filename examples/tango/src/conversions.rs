//! Values and configurations as older releases of the interface have them.

use crate::tango::{
    AttributeConfig, AttributeConfig2, AttributeConfig3, AttributeConfig5, AttributeValue,
    AttributeValue3, AttributeValue4, AttributeValue5, DevCmdInfo, DevCmdInfo2, DevFailed, DevInfo,
    DevInfo3, MultiDevFailed,
};

impl From<AttributeConfig5> for AttributeConfig3 {
    fn from(it: AttributeConfig5) -> Self {
        Self {
            name: it.name,
            writable: it.writable,
            data_format: it.data_format,
            data_type: it.data_type,
            max_dim_x: it.max_dim_x,
            max_dim_y: it.max_dim_y,
            description: it.description,
            label: it.label,
            unit: it.unit,
            standard_unit: it.standard_unit,
            display_unit: it.display_unit,
            format: it.format,
            min_value: it.min_value,
            max_value: it.max_value,
            writable_attr_name: it.writable_attr_name,
            level: it.level,
            att_alarm: it.att_alarm,
            event_prop: it.event_prop,
            extensions: it.extensions,
            sys_extensions: it.sys_extensions,
        }
    }
}

impl From<AttributeConfig5> for AttributeConfig2 {
    fn from(it: AttributeConfig5) -> Self {
        Self {
            name: it.name,
            writable: it.writable,
            data_format: it.data_format,
            data_type: it.data_type,
            max_dim_x: it.max_dim_x,
            max_dim_y: it.max_dim_y,
            description: it.description,
            label: it.label,
            unit: it.unit,
            standard_unit: it.standard_unit,
            display_unit: it.display_unit,
            format: it.format,
            min_value: it.min_value,
            max_value: it.max_value,
            min_alarm: it.att_alarm.min_alarm,
            max_alarm: it.att_alarm.max_alarm,
            writable_attr_name: it.writable_attr_name,
            level: it.level,
            extensions: it.extensions,
        }
    }
}

impl From<AttributeConfig5> for AttributeConfig {
    fn from(it: AttributeConfig5) -> Self {
        let it = AttributeConfig2::from(it);
        Self {
            name: it.name,
            writable: it.writable,
            data_format: it.data_format,
            data_type: it.data_type,
            max_dim_x: it.max_dim_x,
            max_dim_y: it.max_dim_y,
            description: it.description,
            label: it.label,
            unit: it.unit,
            standard_unit: it.standard_unit,
            display_unit: it.display_unit,
            format: it.format,
            min_value: it.min_value,
            max_value: it.max_value,
            min_alarm: it.min_alarm,
            max_alarm: it.max_alarm,
            writable_attr_name: it.writable_attr_name,
            extensions: it.extensions,
        }
    }
}

impl From<AttributeValue5> for AttributeValue4 {
    fn from(it: AttributeValue5) -> Self {
        Self {
            value: it.value,
            quality: it.quality,
            data_format: it.data_format,
            time: it.time,
            name: it.name,
            r_dim: it.r_dim,
            w_dim: it.w_dim,
            err_list: it.err_list,
        }
    }
}

impl TryFrom<AttributeValue5> for AttributeValue3 {
    type Error = DevFailed;

    fn try_from(it: AttributeValue5) -> Result<Self, DevFailed> {
        Ok(Self {
            value: it.value.to_any()?,
            quality: it.quality,
            time: it.time,
            name: it.name,
            r_dim: it.r_dim,
            w_dim: it.w_dim,
            err_list: it.err_list,
        })
    }
}

/// The first releases have no failure for one attribute: it is that of the call.
impl TryFrom<AttributeValue5> for AttributeValue {
    type Error = DevFailed;

    fn try_from(it: AttributeValue5) -> Result<Self, DevFailed> {
        if !it.err_list.is_empty() {
            return Err(DevFailed {
                errors: it.err_list,
            });
        }
        Ok(Self {
            value: it.value.to_any()?,
            quality: it.quality,
            time: it.time,
            name: it.name,
            dim_x: it.r_dim.dim_x,
            dim_y: it.r_dim.dim_y,
        })
    }
}

impl From<DevCmdInfo2> for DevCmdInfo {
    fn from(it: DevCmdInfo2) -> Self {
        Self {
            cmd_name: it.cmd_name,
            cmd_tag: it.cmd_tag,
            in_type: it.in_type,
            out_type: it.out_type,
            in_type_desc: it.in_type_desc,
            out_type_desc: it.out_type_desc,
        }
    }
}

impl From<DevInfo3> for DevInfo {
    fn from(it: DevInfo3) -> Self {
        Self {
            dev_class: it.dev_class,
            server_id: it.server_id,
            server_host: it.server_host,
            server_version: it.server_version,
            doc_url: it.doc_url,
        }
    }
}

/// All elements in an older form.
pub(crate) fn older<T, U: From<T>>(list: Vec<T>) -> Vec<U> {
    list.into_iter().map(U::from).collect()
}

/// All elements in an older form.
///
/// # Errors
/// When one of them has none.
pub(crate) fn older_or_failed<T, U: TryFrom<T, Error = DevFailed>>(
    list: Vec<T>,
) -> Result<Vec<U>, DevFailed> {
    list.into_iter().map(U::try_from).collect()
}

/// The failures of all attributes as those of the call, for the first releases.
pub(crate) fn joined(failure: MultiDevFailed) -> DevFailed {
    let errors = failure.errors.into_iter().flat_map(|it| it.err_list);
    DevFailed {
        errors: errors.collect(),
    }
}
