//! Names of an enum's variants, as files, options and connection strings spell them.

/// Gives an enum that derives `EnumString` and `IntoStaticStr` its `name`, and its way back under
/// the name that is given: `parse`.
macro_rules! names {
    ($kind:ty, $parse:ident) => {
        impl $kind {
            /// Returns the name of the variant, as users write it.
            pub fn name(self) -> &'static str {
                self.into()
            }

            /// Finds the variant called `name`, in this version or an earlier one.
            pub fn $parse(name: &str) -> Option<Self> {
                name.parse().ok()
            }
        }
    };
}

pub(crate) use names;
