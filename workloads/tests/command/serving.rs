//! `serve`: its line, its cluster file, its end, and what it refuses. What programs do with a server is
//! tested with the packages of the driver.

use crate::process::{code, folder, run, shaketable, stderr, stdout};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

/// Starts a server, and returns the line that says that it is ready.
fn serve(arguments: &[&str]) -> (Child, String) {
    let mut child = shaketable(&["serve"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = Vec::new();
    let printed = child.stdout.as_mut().expect("it is piped");
    // Not more than the line: the rest is read in the end.
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        printed.read_exact(&mut byte).expect("it says that it is ready");
        line.extend(byte);
    }
    (child, String::from_utf8(line).expect("text"))
}

fn end(child: Child, signal: &str) -> Output {
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    child.wait_with_output().expect("it ends")
}

/// The answer to bytes that are no greeting.
fn refused(mut stream: impl Read + Write) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it listens");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn it_serves_until_a_signal_and_reports() {
    let folder = folder("serving");
    let (file, report) = (folder.join("fdb.cluster"), folder.join("report"));
    let (file_name, report_name) = (file.to_str().expect("text"), report.to_str().expect("text"));
    for (signal, reports) in [("-INT", false), ("-TERM", true), ("-HUP", false)] {
        let mut arguments = vec!["--seed", "9", "--faults", "storm", "--cluster-file", file_name];
        if reports {
            arguments.extend(["--report", report_name]);
        }
        let (child, line) = serve(&arguments);
        let said = fs::read_to_string(&file).expect("it was written");
        let address = said.trim().strip_prefix("shaketable:serve@").expect("a server").to_owned();
        assert_eq!(
            line,
            format!(
                "serving seed 9, storm faults: set SHAKETABLE_SERVER={address} or FDB_CLUSTER_FILE={file_name}\n"
            )
        );
        let answer = refused(TcpStream::connect(&address).expect("it listens"));
        assert!(answer.contains("what is sent is not shaketable's protocol"), "{answer}");
        let output = end(child, signal);
        assert_eq!((code(&output), stderr(&output)), (0, String::new()), "{signal}");
        let printed = if reports { fs::read_to_string(&report).expect("a report") } else { stdout(&output) };
        assert_eq!(
            printed,
            "nobody used the cluster\nconnections: 0, at most 1 at once, 1 refused\n  refused: what is sent is not shaketable's protocol\n"
        );
    }
}

#[test]
fn the_cluster_file_of_a_server_that_runs_is_not_taken() {
    let folder = folder("serving-one-file");
    let file = folder.join("fdb.cluster");
    let name = file.to_str().expect("text");
    let (child, _) = serve(&["--cluster-file", name]);
    let said = fs::read_to_string(&file).expect("it was written");
    let second = run(&["serve", "--cluster-file", name]);
    let errors = stderr(&second);
    let address = said.trim().strip_prefix("shaketable:serve@").expect("a server");
    let refused =
        format!("shaketable: {name} names the server at {address}, which runs: it is not replaced\n");
    assert_eq!((code(&second), errors), (2, refused));
    assert_eq!(fs::read_to_string(&file).expect("it is there"), said);
    assert!(end(child, "-KILL").status.code().is_none(), "the signal ended it");
    // What a server has left that runs no more is replaced.
    let (child, _) = serve(&["--cluster-file", name]);
    assert_ne!(fs::read_to_string(&file).expect("it was written"), said);
    assert_eq!(code(&end(child, "-TERM")), 0);
}

#[test]
fn a_unix_socket_is_there_while_it_serves() {
    let folder = folder("serving-unix");
    let socket = folder.join("socket");
    let address = format!("unix:{}", socket.display());
    let (child, line) = serve(&["--listen", &address]);
    assert_eq!(line, format!("serving seed 0, calm faults: set SHAKETABLE_SERVER={address}\n"));
    assert!(refused(UnixStream::connect(&socket).expect("it listens")).contains("protocol"));
    assert_eq!(code(&end(child, "-TERM")), 0);
    assert!(!socket.exists());
    // A server that cannot say where it is does not leave it either, nor a file that is no socket.
    let output = run(&["serve", "--listen", &address, "--cluster-file", "/dev/full"]);
    assert_eq!(code(&output), 2);
    assert!(!socket.exists(), "{}", stderr(&output));
    fs::write(&socket, "mine").expect("written");
    assert_eq!(code(&run(&["serve", "--listen", &address])), 2);
    assert_eq!(fs::read_to_string(&socket).expect("it stays"), "mine");
}

#[test]
fn what_it_cannot_serve_is_one_line_and_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).expect("it has one");
    let missing = Path::new("/missing/fdb.cluster").to_str().expect("text");
    let same = folder("serving-twice").join("file").to_str().expect("text").to_owned();
    for (arguments, says) in [
        (&["--listen", taken.1.as_str()][..], "cannot listen at 127.0.0.1:"),
        (&["--listen", "0.0.0.0:0"], "--public allows it"),
        (&["--listen", "nowhere"], "an address is HOST:PORT or unix:PATH"),
        (&["--listen", "unix:/missing/socket"], "cannot listen at unix:/missing/socket: "),
        (&["--listen", "192.0.2.1:0", "--public"], "cannot listen at 192.0.2.1:0: "),
        (&["--cluster-file", missing], "cannot write /missing/fdb.cluster: "),
        (&["--report", missing], "cannot write /missing/fdb.cluster: "),
        (&["--report", &same, "--snapshot", &same], "--report and --snapshot are the same file"),
        (&["--cluster-file", &same, "--report", &same], "--cluster-file and --report are the same file"),
        (&["--without", "kil"], "unknown fault family \"kil\" (did you mean kill?)"),
        (&["--topology", "disks=3"], "disks is none of storage_servers, "),
        (&["--seed", "x"], "invalid value 'x' for '--seed <SEED>'"),
    ] {
        let output = shaketable(&["serve"]).args(arguments).output().expect("it starts");
        let errors = stderr(&output);
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{arguments:?}: {errors}");
        assert!(errors.starts_with("shaketable: ") && errors.contains(says), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn a_snapshot_is_restored_and_written() {
    let folder = folder("serving-snapshot");
    let path = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    let (from, to) = (path("from"), path("to"));
    let text = "shaketable snapshot 1\n\\x00a 1\nb some\\x20text\nrows 2\n";
    fs::write(&from, text).expect("written");
    let (child, _) = serve(&["--restore", &from, "--snapshot", &to]);
    assert_eq!(code(&end(child, "-TERM")), 0);
    assert_eq!(fs::read_to_string(&to).expect("a snapshot"), text);
    let torn = path("torn");
    fs::write(&torn, &text[..text.len() - 3]).expect("written");
    let (missing, newer, other) = (path("missing"), path("newer"), path("other"));
    fs::write(&newer, text.replace("snapshot 1", "snapshot 2")).expect("written");
    fs::write(&other, "something else\n").expect("written");
    for (restored, why) in [
        (&torn, "it is not whole: "),
        (&missing, "cannot read "),
        (&path(""), "cannot read "),
        (&newer, "it is a snapshot of version \"2\"; this program reads version 1"),
        (&other, "it is no snapshot: its first line is not \"shaketable snapshot 1\""),
    ] {
        let output = run(&["serve", "--restore", restored, "--snapshot", &to]);
        let errors = stderr(&output);
        assert_eq!((code(&output), errors.lines().count()), (2, 1), "{errors}");
        assert!(errors.contains(why), "{errors}");
    }
    assert_eq!(fs::read_to_string(&to).expect("a snapshot"), text, "it is left as it was");
    let output = run(&["serve", "--snapshot", "/missing/file"]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

/// A program that is connected when the server ends is told so.
#[test]
fn the_end_is_told_to_who_is_connected() {
    let (child, line) = serve(&[]);
    let address = line.trim().rsplit_once('=').expect("an address").1.to_owned();
    let mut stream = TcpStream::connect(address).expect("it listens");
    // Of version 4 of the protocol.
    let greeting = [&b"shaketable"[..], &4_u16.to_le_bytes(), &u32::MAX.to_le_bytes()].concat();
    stream.write_all(&greeting).expect("it listens");
    let mut server = [0; 16];
    stream.read_exact(&mut server).expect("it greets");
    assert_eq!(&server[..12], b"SHAKETABLE\x04\0");
    let output = end(child, "-TERM");
    let printed = stdout(&output);
    assert!(printed.ends_with("connections: 1, at most 1 at once, 0 refused\n"), "{printed}");
    let mut rest = String::new();
    BufReader::new(stream).read_line(&mut rest).expect("it says why");
    assert!(rest.ends_with("the server has ended"), "{rest:?}");
}
