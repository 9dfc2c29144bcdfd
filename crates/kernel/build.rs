//! Makes the skeleton of the program for the kernel from the compiled program: no compiler is asked
//! for. `src/bpf_skel.rs` includes it.

fn main() {
    println!("cargo::rerun-if-changed=src/bpf/main.bpf.o");
    #[cfg(feature = "load")]
    make();
}

#[cfg(feature = "load")]
fn make() {
    use std::path::PathBuf;

    let directory = |name| PathBuf::from(std::env::var_os(name).expect("cargo says it"));
    let object = directory("CARGO_MANIFEST_DIR").join("src/bpf/main.bpf.o");
    let skeleton = directory("OUT_DIR").join("bpf_skel.rs");
    libbpf_cargo::SkeletonBuilder::new()
        .obj(object)
        .reference_obj(true)
        .generate(skeleton)
        .expect("src/bpf/main.bpf.o is a program for the kernel");
}
