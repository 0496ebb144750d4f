//! Values and configurations as older releases of the interface have them.

use crate::tango::{
    AttributeConfig, AttributeConfig2, AttributeConfig3, AttributeConfig5, AttributeValue,
    AttributeValue3, AttributeValue4, AttributeValue5, DevCmdInfo, DevCmdInfo2, DevFailed, DevInfo,
    DevInfo3, MultiDevFailed,
};

/// Converts structs into older ones: fields that both have, and fields that come from another place.
macro_rules! older {
    ($($new:ident => $old:ident { $($field:ident)* $(; $moved:ident = $($path:ident).+)* })*) => {$(
        impl From<$new> for $old {
            fn from(it: $new) -> Self {
                Self {
                    $($field: it.$field,)*
                    $($moved: it.$($path).+,)*
                }
            }
        }
    )*};
}

older! {
    AttributeConfig5 => AttributeConfig3 {
        name writable data_format data_type max_dim_x max_dim_y description label unit standard_unit display_unit format
        min_value max_value writable_attr_name level att_alarm event_prop extensions sys_extensions
    }
    AttributeConfig5 => AttributeConfig2 {
        name writable data_format data_type max_dim_x max_dim_y description label unit standard_unit display_unit format
        min_value max_value writable_attr_name level extensions;
        min_alarm = att_alarm.min_alarm; max_alarm = att_alarm.max_alarm
    }
    AttributeConfig5 => AttributeConfig {
        name writable data_format data_type max_dim_x max_dim_y description label unit standard_unit display_unit format
        min_value max_value writable_attr_name extensions;
        min_alarm = att_alarm.min_alarm; max_alarm = att_alarm.max_alarm
    }
    AttributeValue5 => AttributeValue4 { value quality data_format time name r_dim w_dim err_list }
    DevCmdInfo2 => DevCmdInfo { cmd_name cmd_tag in_type out_type in_type_desc out_type_desc }
    DevInfo3 => DevInfo { dev_class server_id server_host server_version doc_url }
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
