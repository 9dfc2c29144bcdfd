//! What this program does when it is started as another user, or as a supervisor that can be
//! killed.

use super::plan;
use heap::exec;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// What this program does when it is started as somebody, with arguments.
pub fn part(role: &str, arguments: &[String]) {
    match role {
        "connect" => connect(arguments),
        "take-over" => take_over(arguments),
        "listen" => listen(arguments),
        "supervise" => supervise(arguments),
        _ => panic!("there is no part {role}"),
    }
}

/// Says whether a socket lets this user in.
fn connect(arguments: &[String]) {
    match UnixStream::connect(&arguments[0]) {
        Ok(_) => println!("connected"),
        Err(e) => println!("{:?}", e.kind()),
    }
}

/// Tries to become the owner of what a path means; says with what it succeeded.
fn take_over(arguments: &[String]) {
    for path in arguments
        .iter()
        .flat_map(|path| Path::new(path).ancestors())
    {
        let say = |what: &str, done: bool| {
            if done {
                println!("{what} {}", path.display());
            }
        };
        if path.parent().is_none() {
            continue;
        }
        let beside = path.with_extension("other");
        if path.is_dir() {
            let own = path.join("other");
            say("made a file in", std::fs::write(&own, "").is_ok());
            say(
                "listed",
                path.ends_with("warmset-color-exec") && path.read_dir().is_ok(),
            );
        } else {
            let file = std::fs::OpenOptions::new().write(true).open(path);
            say("can write to", file.is_ok());
            say("removed", std::fs::remove_file(path).is_ok());
            say("listens at", UnixListener::bind(path).is_ok());
        }
        say("moved", std::fs::rename(path, &beside).is_ok());
        let open = std::fs::Permissions::from_mode(0o777);
        say(
            "opened to all",
            std::fs::set_permissions(path, open).is_ok(),
        );
    }
    println!("tried");
}

/// Listens at a path for one connection, and says how many bytes came over it.
fn listen(arguments: &[String]) {
    let listener = UnixListener::bind(&arguments[0]).unwrap();
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&arguments[0], all).unwrap();
    println!("listening");
    let (mut stream, _) = listener.accept().unwrap();
    // A client that says nothing hangs up.
    let bytes = stream.read(&mut [0; 64]).unwrap_or(0);
    println!("{bytes} bytes");
}

/// Runs a script in colors.
fn supervise(arguments: &[String]) {
    let script = ["-c".into(), OsString::from(&arguments[1])];
    let ran = exec::run(Path::new(&arguments[0]), &plan(), Path::new("sh"), &script).unwrap();
    println!("supervised: {:?}", ran.status.code());
}
