//! References as servers built of TAO write them, by hand: an opinion of the octets that owes nothing to rtorb-wire.

use std::fmt::Write;

/// Whose priority counts (RTCORBA::PriorityModel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// CLIENT_PROPAGATED.
    Client,
    /// SERVER_DECLARED.
    Server,
}

/// A reference to an object of an adapter with policies of RT-CORBA, on loopback.
#[derive(Clone, Debug)]
pub struct TaoReference {
    /// Ports and priorities; that of the first is the profile's.
    pub endpoints: Vec<(u16, i16)>,
    /// The model, and the server's priority.
    pub model: Option<(Model, i16)>,
    /// The least and greatest priority of each band.
    pub bands: Vec<(i16, i16)>,
    /// Big-endian if true.
    pub big: bool,
}

impl TaoReference {
    /// The reference as text.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_with(&self.endpoints_component(), &self.policies_component())
    }

    /// The reference as text, with these data of TAO_TAG_ENDPOINTS and TAG_POLICIES.
    ///
    /// # Panics
    ///
    /// It lists no endpoint.
    #[must_use]
    pub fn text_with(&self, endpoints: &[u8], policies: &[u8]) -> String {
        const ORB_TYPE: u32 = 0;
        const POLICIES: u32 = 2;
        const TAO_ENDPOINTS: u32 = 0x5441_4f02;
        let mut orb_type = self.encapsulation();
        orb_type.ulong(0x5441_4f00);
        let mut profile = self.encapsulation();
        let (port, _) = self.endpoints.first().expect("an endpoint");
        profile.raw(&[1, 2]).string("127.0.0.1").ushort(*port);
        profile.octets(b"abcdef").ulong(3);
        profile.ulong(ORB_TYPE).octets(&orb_type.octets);
        profile.ulong(TAO_ENDPOINTS).octets(endpoints);
        profile.ulong(POLICIES).octets(policies);
        let mut ior = self.encapsulation();
        ior.string("IDL:Cubit:1.0").ulong(1).ulong(0);
        ior.octets(&profile.octets);
        let mut text = "IOR:".to_owned();
        for octet in &ior.octets {
            let _ = write!(text, "{octet:02x}");
        }
        text
    }

    /// The data of TAO_TAG_ENDPOINTS.
    #[must_use]
    pub fn endpoints_component(&self) -> Vec<u8> {
        let mut data = self.encapsulation();
        data.count(self.endpoints.len());
        for &(port, priority) in &self.endpoints {
            data.string("127.0.0.1").ushort(port);
            data.ushort(priority.cast_unsigned());
        }
        data.octets
    }

    /// The data of TAG_POLICIES: bands before the model.
    #[must_use]
    pub fn policies_component(&self) -> Vec<u8> {
        let mut data = self.encapsulation();
        let with_bands = !self.bands.is_empty();
        data.count(usize::from(with_bands) + usize::from(self.model.is_some()));
        if with_bands {
            let mut bands = self.encapsulation();
            bands.count(self.bands.len());
            for &(low, high) in &self.bands {
                bands
                    .ushort(low.cast_unsigned())
                    .ushort(high.cast_unsigned());
            }
            data.ulong(45).octets(&bands.octets);
        }
        if let Some((model, priority)) = self.model {
            let mut value = self.encapsulation();
            value.ulong(u32::from(model == Model::Server));
            value.ushort(priority.cast_unsigned());
            data.ulong(40).octets(&value.octets);
        }
        data.octets
    }

    /// An encapsulation with nothing in it but its byte order.
    fn encapsulation(&self) -> Encapsulation {
        Encapsulation {
            octets: vec![u8::from(!self.big)],
            big: self.big,
        }
    }
}

/// CDR whose padding holds what happened to be in memory, as TAO's does.
struct Encapsulation {
    octets: Vec<u8>,
    big: bool,
}

impl Encapsulation {
    fn align(&mut self, size: usize) -> &mut Self {
        const GARBAGE: [u8; 3] = [0xbb, 0xf0, 0x5f];
        let padding = self.octets.len().next_multiple_of(size) - self.octets.len();
        self.raw(&GARBAGE[..padding])
    }

    fn raw(&mut self, octets: &[u8]) -> &mut Self {
        self.octets.extend_from_slice(octets);
        self
    }

    fn ushort(&mut self, value: u16) -> &mut Self {
        let octets = if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.align(2).raw(&octets)
    }

    fn ulong(&mut self, value: u32) -> &mut Self {
        let octets = if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.align(4).raw(&octets)
    }

    fn count(&mut self, count: usize) -> &mut Self {
        self.ulong(u32::try_from(count).expect("a test's sequence is short"))
    }

    fn octets(&mut self, octets: &[u8]) -> &mut Self {
        self.count(octets.len()).raw(octets)
    }

    fn string(&mut self, text: &str) -> &mut Self {
        self.octets(&[text.as_bytes(), &[0]].concat())
    }
}
