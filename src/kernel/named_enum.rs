//! Enums whose values have names in SQL and in exports.

/// Declares an enum with a name for each value, which is also how it is serialised. With `default`, a stored name
/// is read leniently.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$doc:meta])*
        $name:ident $(, default $default:ident)? {
            $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name in SQL and in exports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The value with exactly this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }

            $(
                /// The value that a stored name means, in any ASCII case; NULL and unknown names take the default.
                #[must_use]
                pub fn from_stored(name: Option<&str>) -> Self {
                    let name = name.unwrap_or_default();
                    let named = |value: &Self| value.name().eq_ignore_ascii_case(name);
                    Self::ALL.iter().copied().find(named).unwrap_or($name::$default)
                }
            )?
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

pub use named_enum;
