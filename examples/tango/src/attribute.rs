//! An attribute of a device: its configuration, and how it is read and written.

use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

use rtorb_os::sync::Mutex;

use crate::failure::failed;
use crate::tango::{
    ArchiveEventProp, AttrDataFormat, AttrQuality, AttrValUnion, AttrWriteType, AttributeAlarm,
    AttributeConfig5, AttributeDim, AttributeValue5, ChangeEventProp, DevFailed, DevState,
    DispLevel, EventProperties, PeriodicEventProp, TimeVal,
};
use crate::value::{AttributeType, Value};

/// An attribute of devices with model `M`.
pub struct Attribute<M> {
    config: AttributeConfig5,
    limits: Option<RangeInclusive<f64>>,
    read: Box<Read<M>>,
    write: Option<Box<Write<M>>>,
    quality: Box<dyn Fn(&M) -> AttrQuality + Send + Sync>,
    /// What a client wrote last, which readers get beside the value.
    set_value: Mutex<Option<AttrValUnion>>,
}

type Read<M> = dyn Fn(&M) -> Result<AttrValUnion, DevFailed> + Send + Sync;
type Write<M> = dyn Fn(&M, &AttrValUnion) -> Result<(), DevFailed> + Send + Sync;

impl<M: 'static> Attribute<M> {
    /// An attribute that clients can read: a scalar, or a spectrum if `T` is a vector.
    #[must_use]
    pub fn readable<T: AttributeType>(
        name: &str,
        read: impl Fn(&M) -> Result<T, DevFailed> + Send + Sync + 'static,
    ) -> Self {
        let read = move |model: &M| read(model).map(T::into_union);
        Self::new(configuration::<T>(name), Box::new(read))
    }

    /// An attribute that clients can read and write.
    #[must_use]
    pub fn writable<T: AttributeType>(
        name: &str,
        read: impl Fn(&M) -> Result<T, DevFailed> + Send + Sync + 'static,
        write: impl Fn(&M, T) -> Result<(), DevFailed> + Send + Sync + 'static,
    ) -> Self {
        let mut attribute = Self::readable(name, read);
        attribute.config.writable = AttrWriteType::ReadWrite;
        attribute.config.writable_attr_name = name.to_owned();
        let name = name.to_owned();
        attribute.write = Some(Box::new(move |model, value| {
            let value = T::from_union(value).ok_or_else(|| wrong_type::<T>(&name))?;
            write(model, value)
        }));
        attribute
    }

    /// The attribute `State` that every device has.
    pub(crate) fn state(read: impl Fn(&M) -> DevState + Send + Sync + 'static) -> Self {
        let config = AttributeConfig5 {
            format: NOT_SPECIFIED.to_owned(),
            ..configuration::<DevState>("State")
        };
        Self::new(
            config,
            Box::new(move |model| Ok(AttrValUnion::DevStateAtt(read(model)))),
        )
    }

    fn new(config: AttributeConfig5, read: Box<Read<M>>) -> Self {
        Self {
            config,
            limits: None,
            read,
            write: None,
            quality: Box::new(|_| AttrQuality::AttrValid),
            set_value: Mutex::new(None),
        }
    }

    /// Sets the unit.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        unit.clone_into(&mut self.config.unit);
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: &str) -> Self {
        description.clone_into(&mut self.config.description);
        self
    }

    /// Sets the limits of what a client may write.
    #[must_use]
    pub fn range(mut self, min: f64, max: f64) -> Self {
        self.config.min_value = min.to_string();
        self.config.max_value = max.to_string();
        self.limits = Some(min..=max);
        self
    }

    /// Sets the maximum number of elements of a spectrum.
    #[must_use]
    pub fn elements_max(mut self, count: u16) -> Self {
        self.config.max_dim_x = i32::from(count);
        self
    }

    /// Sets what tells the quality of the value; without it every value is valid.
    #[must_use]
    pub fn quality(mut self, quality: impl Fn(&M) -> AttrQuality + Send + Sync + 'static) -> Self {
        self.quality = Box::new(quality);
        self
    }

    /// The configuration, as clients get it.
    #[must_use]
    pub fn config(&self) -> &AttributeConfig5 {
        &self.config
    }

    /// Reads the attribute: the value, and the value that was set last behind it.
    ///
    /// # Errors
    /// What the model raises.
    pub(crate) fn read(&self, model: &M) -> Result<AttributeValue5, DevFailed> {
        let mut value = (self.read)(model)?;
        let r_dim = self.dimension(value.len());
        let set_value = self.set_value.lock();
        let w_dim = self.dimension(set_value.as_ref().map_or(0, AttrValUnion::len));
        if let Some(set_value) = &*set_value {
            value.append(set_value);
        }
        Ok(AttributeValue5 {
            value,
            quality: (self.quality)(model),
            data_format: self.config.data_format,
            data_type: self.config.data_type,
            time: now(),
            name: self.config.name.clone(),
            r_dim,
            w_dim,
            err_list: Vec::new(),
        })
    }

    /// Writes the attribute.
    ///
    /// # Errors
    /// When it cannot be written, or not with that value.
    pub(crate) fn write(&self, model: &M, value: &AttrValUnion) -> Result<(), DevFailed> {
        let name = &self.config.name;
        let Some(write) = &self.write else {
            let desc = format!("Attribute {name} is not writable");
            return Err(failed("API_AttrNotWritable", desc, WRITE));
        };
        for number in value.numbers() {
            if self
                .limits
                .as_ref()
                .is_some_and(|limits| !limits.contains(&number))
            {
                let desc = format!(
                    "Set value for attribute {name} is {number}, outside of {} to {}",
                    self.config.min_value, self.config.max_value
                );
                return Err(failed("API_WAttrOutsideLimit", desc, WRITE));
            }
        }
        let count_max = usize::try_from(self.config.max_dim_x).unwrap_or(0);
        if value.len() > count_max {
            let desc = format!(
                "Attribute {name} has at most {count_max} elements, and the value has {}",
                value.len()
            );
            return Err(failed("API_WAttrOutsideLimit", desc, WRITE));
        }
        write(model, value)?;
        *self.set_value.lock() = Some(value.clone());
        Ok(())
    }

    fn dimension(&self, count: usize) -> AttributeDim {
        AttributeDim {
            dim_x: i32::try_from(count).unwrap_or(i32::MAX),
            dim_y: 0,
        }
    }
}

/// The value of an attribute that could not be read.
pub(crate) fn unread(name: &str, failure: DevFailed) -> AttributeValue5 {
    const NO_DIMENSION: AttributeDim = AttributeDim { dim_x: 0, dim_y: 0 };
    AttributeValue5 {
        value: AttrValUnion::UnionNoData(true),
        quality: AttrQuality::AttrInvalid,
        data_format: AttrDataFormat::FmtUnknown,
        data_type: <() as Value>::TYPE,
        time: TimeVal {
            tv_sec: 0,
            tv_usec: 0,
            tv_nsec: 0,
        },
        name: name.to_owned(),
        r_dim: NO_DIMENSION,
        w_dim: NO_DIMENSION,
        err_list: failure.errors,
    }
}

/// The time of day. Its seconds end in 2038, as Tango's do.
fn now() -> TimeVal {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    TimeVal {
        tv_sec: i32::try_from(since.as_secs()).unwrap_or(i32::MAX),
        tv_usec: i32::try_from(since.subsec_micros()).unwrap_or(0),
        tv_nsec: 0,
    }
}

fn wrong_type<T: AttributeType>(name: &str) -> DevFailed {
    let desc = format!(
        "Incompatible attribute type, expected type for attribute {name} is {}",
        <T as Value>::NAME
    );
    failed("API_IncompatibleAttrDataType", desc, WRITE)
}

/// A configuration as Tango has it if nobody says more.
fn configuration<T: AttributeType>(name: &str) -> AttributeConfig5 {
    let text = |text: &str| text.to_owned();
    let unset = || NOT_SPECIFIED.to_owned();
    AttributeConfig5 {
        name: text(name),
        writable: AttrWriteType::Read,
        data_format: T::FORMAT,
        data_type: T::ELEMENT,
        memorized: false,
        mem_init: false,
        max_dim_x: 1,
        max_dim_y: 0,
        description: text("No description"),
        label: text(name),
        unit: String::new(),
        standard_unit: text("No standard unit"),
        display_unit: text("No display unit"),
        format: text(match T::ELEMENT {
            <f32 as Value>::TYPE | <f64 as Value>::TYPE => "%6.2f",
            <String as Value>::TYPE => "%s",
            _ => "%d",
        }),
        min_value: unset(),
        max_value: unset(),
        writable_attr_name: text("None"),
        level: DispLevel::Operator,
        root_attr_name: unset(),
        enum_labels: Vec::new(),
        att_alarm: AttributeAlarm {
            min_alarm: unset(),
            max_alarm: unset(),
            min_warning: unset(),
            max_warning: unset(),
            delta_t: unset(),
            delta_val: unset(),
            extensions: Vec::new(),
        },
        event_prop: EventProperties {
            ch_event: ChangeEventProp {
                rel_change: unset(),
                abs_change: unset(),
                extensions: Vec::new(),
            },
            per_event: PeriodicEventProp {
                period: text("1000"),
                extensions: Vec::new(),
            },
            arch_event: ArchiveEventProp {
                rel_change: unset(),
                abs_change: unset(),
                period: unset(),
                extensions: Vec::new(),
            },
        },
        extensions: Vec::new(),
        sys_extensions: Vec::new(),
    }
}

const NOT_SPECIFIED: &str = "Not specified";
const WRITE: &str = "rtorb_tango::Attribute::write";
