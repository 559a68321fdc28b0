//! pgdyno
fn main() {}
