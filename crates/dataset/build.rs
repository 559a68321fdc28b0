//! Workloads are built in: a changed file must rebuild the crate.
fn main() {
    println!("cargo:rerun-if-changed=../../workloads");
}
