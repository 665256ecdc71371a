//! The app's own commands become permissions, which `capabilities/` gives to the window that needs them and to no other;
//! and the licences of everything that is built in are listed for the About page.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

include!("src/command_names.rs");

fn main() {
    let pages = Path::new("../ui/dist/index.html");
    println!("cargo::rerun-if-changed={}", pages.display());
    if !pages.exists() {
        println!(
            "cargo::error=the pages are not built: run `cargo xtask ui`, or `npm ci && npm run build` in ui/"
        );
        return;
    }
    let names: Vec<&'static str> = MAIN.into_iter().chain(PROMPT).chain(UNLOCK).collect();
    let manifest = tauri_build::AppManifest::new().commands(names.leak());
    if let Err(error) = tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest)) {
        println!("cargo::error={error:#}");
        return;
    }
    if let Err(error) = list_licences() {
        println!("cargo::error=the licences cannot be listed: {error}");
    }
}

/// `licences.json`: name, version and licence of each package that the app is built from.
fn list_licences() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../Cargo.lock");
    let target = env::var("TARGET")?;
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &target])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let mut parts: Vec<_> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|package| !package["source"].is_null())
        .map(|package| {
            serde_json::json!({"name": package["name"], "version": package["version"],
                "licence": package["license"].as_str().unwrap_or("see its files")})
        })
        .collect();
    parts.sort_by_key(ToString::to_string);
    fs::write(Path::new(&env::var("OUT_DIR")?).join("licences.json"), serde_json::to_vec(&parts)?)?;
    Ok(())
}
