//! Names of an enum's variants, as files, options and connection strings spell them.

/// Gives an enum that derives `IntoStaticStr` its `name`. If it derives `EnumString` too, gives it
/// the way back under the name that stands beside it, such as `parse`.
macro_rules! names {
    ($kind:ty) => {
        impl $kind {
            /// Returns the name of the variant, as users write it.
            pub fn name(self) -> &'static str {
                self.into()
            }
        }
    };
    ($kind:ty, $parse:ident) => {
        crate::names::names!($kind);

        impl $kind {
            /// Finds the variant called `name`, in this version or an earlier one.
            pub fn $parse(name: &str) -> Option<Self> {
                name.parse().ok()
            }
        }
    };
}

pub(crate) use names;
