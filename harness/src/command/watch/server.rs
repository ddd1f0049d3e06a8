//! Serves the page: on the loopback address alone, with a bound on everything that who connects can use.
//!
//! Each connection is one request, on a thread of its own. A request and an answer take at most [`LONGEST`]
//! each, whatever the other side does. When the server stops, it waits for no more requests, and ends the
//! answers that it has begun. While nobody connects, it waits in the system and does nothing.

use super::{
    super::cost,
    request::{self, Refused, Wanted, wanted},
};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, Scope},
    time::Duration,
};

/// The most connections at once.
const MOST: usize = 32;

/// The longest time of a request, and of an answer.
const LONGEST: Duration = Duration::from_secs(5);

/// How long the rest of a request that was refused is read, so that the refusal arrives.
const LONGEST_REST: Duration = Duration::from_millis(500);

/// How long the server waits when the system has no more sockets.
const PAUSE: Duration = Duration::from_millis(50);

/// The bytes of a token, which are printed as hexadecimal digits.
const TOKEN: usize = 16;

/// A server that listens.
pub(super) struct Server {
    listener: TcpListener,
    token: String,
    port: u16,
    /// [`LONGEST`], except in tests.
    longest: Duration,
}

/// What ends the threads of a server when it is dropped.
struct Stop<'a> {
    served: &'a Served,
    _wake: UnixStream,
}

/// The state of a server while it serves.
#[derive(Default)]
struct Served {
    is_over: AtomicBool,
    /// The connections that are open, by number.
    open: Mutex<(u64, BTreeMap<u64, Open>)>,
}

/// A connection that is open.
struct Open {
    stream: TcpStream,
    /// Whether it has asked for something that it may have.
    has_asked: bool,
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.served.is_over.store(true, Ordering::SeqCst);
        let open = self.served.open.lock();
        // One that is closed already has ended.
        open.1.values().for_each(|open| drop(open.stream.shutdown(Shutdown::Read)));
    }
}

impl Server {
    /// Listens on a port of the loopback address; 0 is any that is free.
    pub(super) fn listen(port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let mut bytes = [0; TOKEN];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Server { listener, token, port, longest: LONGEST })
    }

    /// The address of the page.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Serves while `work` works. `content` makes what is asked for, and is called for nothing else.
    pub(super) fn during<T>(
        &self,
        content: impl Fn(Wanted) -> String + Sync,
        work: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let served = Served::default();
        let (wake, woken) = UnixStream::pair()?;
        let (served, content) = (&served, &content);
        thread::scope(|scope| {
            let stop = Stop { served, _wake: wake };
            thread::Builder::new()
                .name("watch".to_owned())
                .spawn_scoped(scope, move || self.accept(scope, &woken, served, content))?;
            let done = work();
            drop(stop);
            Ok(done)
        })
    }

    fn accept<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        woken: &UnixStream,
        served: &'scope Served,
        content: &'scope (impl Fn(Wanted) -> String + Sync),
    ) {
        while !served.is_over.load(Ordering::SeqCst) {
            let mut readers = [&self.listener as &dyn std::os::fd::AsFd, woken]
                .map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN));
            // A signal interrupts it.
            let _ = poll(&mut readers, None);
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // It is gone again, or the system has no more sockets.
                Err(_) => {
                    thread::park_timeout(PAUSE);
                    continue;
                }
            };
            // One that is not served is closed.
            let Some(number) = served.enter(&stream) else { continue };
            let serve = move || {
                // A page that cannot be made ends neither the server nor the sweep.
                let asked = || served.asked(number);
                let _ = catch_unwind(AssertUnwindSafe(|| self.answer(&stream, asked, content)));
                served.open.lock().1.remove(&number);
            };
            if thread::Builder::new().name("page".to_owned()).spawn_scoped(scope, serve).is_err() {
                served.open.lock().1.remove(&number);
            }
        }
    }

    /// Reads the request of a connection, and answers. Whatever fails, the connection is closed.
    fn answer(&self, stream: &TcpStream, asked: impl Fn(), content: &impl Fn(Wanted) -> String) {
        let timed = || Timed { stream, deadline: cost::deadline(self.longest) };
        let wanted = match self.read(&timed()) {
            Ok(Some(wanted)) => wanted,
            // Browsers connect in advance.
            Ok(None) => return,
            Err(refused) => {
                let Refused(status, why) = refused;
                let timed = timed();
                if timed.write(&response(status, "text/plain", &format!("{why}\n"))).is_ok() {
                    timed.read_rest();
                }
                return;
            }
        };
        asked();
        let kind = match wanted {
            Wanted::Page => "text/html",
            Wanted::Data => "application/json",
        };
        // Whoever asked may be gone.
        let answer = response("200 OK", kind, &content(wanted));
        let _ = timed().write(&answer);
    }

    /// What is asked for; `None` if nothing was sent.
    fn read(&self, timed: &Timed<'_>) -> Result<Option<Wanted>, Refused> {
        let mut bytes = [0; request::LONGEST];
        let mut length = 0;
        loop {
            match timed.read(&mut bytes[length..]) {
                Ok(n @ 1..) => length += n,
                Ok(0) | Err(_) if length == 0 => return Ok(None),
                Ok(0) | Err(_) => return Err(request::torn()),
            }
            if let Some(wanted) = wanted(&bytes[..length], &self.token)? {
                return Ok(Some(wanted));
            }
        }
    }
}

impl Served {
    /// Notes a connection, unless the server stops: then it is not to be served. If there are too many, the
    /// first that has asked for nothing yet is closed for it, so that silent ones keep nobody out.
    fn enter(&self, stream: &TcpStream) -> Option<u64> {
        let mut open = self.open.lock();
        if self.is_over.load(Ordering::SeqCst) {
            return None;
        }
        if open.1.len() >= MOST {
            let silent = open.1.iter().find(|(_, open)| !open.has_asked).map(|(number, _)| *number)?;
            let silent = open.1.remove(&silent)?;
            // One that is closed already has ended.
            let _ = silent.stream.shutdown(Shutdown::Both);
        }
        stream.set_nonblocking(false).ok()?;
        let number = open.0;
        open.0 += 1;
        open.1.insert(number, Open { stream: stream.try_clone().ok()?, has_asked: false });
        Some(number)
    }

    /// Notes that a connection has asked for something that it may have.
    fn asked(&self, number: u64) {
        self.open.lock().1.entry(number).and_modify(|open| open.has_asked = true);
    }
}

/// An answer, after which the connection is closed. It is for this page alone, and for nobody to keep.
fn response(status: &str, kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: {kind}; charset=utf-8\r\n\
         Content-Length: {}\r\n\
         Allow: GET\r\n\
         Cache-Control: no-store\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         Referrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A connection that ends at a time, as [`cost::wall`] has it.
struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: u64,
}

impl Timed<'_> {
    /// The time that is left.
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.checked_sub(cost::wall()) {
            Some(left @ 1..) => Ok(Some(Duration::from_nanos(left).max(Duration::from_millis(1)))),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(self.left()?)?;
            match (&mut &*self.stream).read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(self.left()?)?;
            match (&mut &*self.stream).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => bytes = &bytes[written?..],
            }
        }
        Ok(())
    }

    /// Ends the answer, and reads what is left of the request: a connection that is closed before everything
    /// was read is reset, and the answer may be lost.
    fn read_rest(&self) {
        let rest = Timed { stream: self.stream, deadline: cost::deadline(LONGEST_REST).min(self.deadline) };
        let mut bytes = [0; 4096];
        if self.stream.shutdown(Shutdown::Write).is_ok() {
            while rest.read(&mut bytes).is_ok_and(|n| n > 0) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Longer than any test.
    const ENDLESS: Duration = Duration::from_secs(3_600);

    fn server(longest: Duration) -> Server {
        Server { longest, ..Server::listen(0).expect("a free port") }
    }

    fn connect(server: &Server) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).expect("it listens")
    }

    /// What is answered until the connection ends.
    fn answer(mut stream: TcpStream) -> String {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it is closed");
        String::from_utf8(answer).expect("text")
    }

    fn ask(server: &Server, request: &str) -> String {
        let mut stream = connect(server);
        stream.write_all(request.as_bytes()).expect("it reads");
        answer(stream)
    }

    fn get(server: &Server, place: &str) -> String {
        ask(server, &format!("GET {place}?token={} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", server.token))
    }

    fn shown(wanted: Wanted) -> String {
        format!("{wanted:?} \u{e9}")
    }

    #[test]
    fn what_is_asked_for_is_made_then_and_nothing_else() {
        let server = server(ENDLESS);
        let made = AtomicU64::new(0);
        let content = |wanted| {
            made.fetch_add(1, Ordering::SeqCst);
            shown(wanted)
        };
        let work = || {
            // One that says nothing, as browsers do in advance.
            let idle = connect(&server);
            assert_eq!(
                ask(&server, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").lines().next(),
                Some("HTTP/1.1 403 Forbidden")
            );
            assert_eq!(made.load(Ordering::SeqCst), 0);
            let page = get(&server, "/");
            let (head, body) = page.split_once("\r\n\r\n").expect("a head");
            assert_eq!(body, "Page \u{e9}");
            for line in [
                "HTTP/1.1 200 OK",
                "Content-Type: text/html; charset=utf-8",
                "Content-Length: 7",
                "Cache-Control: no-store",
                "Referrer-Policy: no-referrer",
                "Connection: close",
            ] {
                assert!(head.lines().any(|known| known == line), "{head}");
            }
            let data = get(&server, "/data.json");
            assert!(data.contains("application/json") && data.ends_with("Data \u{e9}"), "{data}");
            assert_eq!(made.load(Ordering::SeqCst), 2);
            idle
        };
        let idle = server.during(content, work).expect("threads");
        // The threads have ended, and so have the connections that were open.
        assert_eq!(answer(idle), "");
        assert!(server.during(shown, || get(&server, "/").len()).expect("it serves again") > 0);
    }

    #[test]
    fn it_listens_to_this_machine_alone() {
        let server = server(ENDLESS);
        assert_eq!(server.listener.local_addr().expect("an address").ip(), Ipv4Addr::LOCALHOST);
        // Another address of the loopback device, which whoever listens at all addresses has as well.
        let other = TcpStream::connect((Ipv4Addr::new(127, 0, 0, 2), server.port));
        assert!(cfg!(not(target_os = "linux")) || other.is_err());
        let other = super::Server::listen(0).expect("a free port");
        assert!(server.token.len() == 32 && server.token != other.token);
        assert_eq!(server.address(), format!("http://127.0.0.1:{}/?token={}", server.port, server.token));
        assert!(Server::listen(server.port).is_err(), "the port is taken");
    }

    #[test]
    fn what_is_torn_or_slow_or_too_long_ends_with_a_sentence() {
        let server = server(Duration::from_millis(200));
        let refused = |answer: String, status: &str| {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
            let (_, sentence) = answer.split_once("\r\n\r\n").expect("a head");
            assert_eq!(sentence.lines().count(), 1, "{answer}");
        };
        let work = || {
            // Torn by its end, or by nothing more that comes.
            let mut torn = connect(&server);
            torn.write_all(b"GET / HTTP/1.1\r\nHo").expect("it reads");
            torn.shutdown(Shutdown::Write).expect("it is open");
            refused(answer(torn), "400 Bad Request");
            refused(ask(&server, "GET / HTTP/1.1\r\nHo"), "400 Bad Request");
            assert_eq!(ask(&server, ""), "", "nothing was asked");
            // The refusal arrives although the request goes on.
            refused(ask(&server, &format!("GET /{}", "a".repeat(100_000))), "400 Bad Request");
            refused(
                ask(&server, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n123456789"),
                "405 Method Not Allowed",
            );
            refused(get(&server, "/elsewhere"), "404 Not Found");
            refused(ask(&server, "\u{16}\u{3}\u{1}"), "400 Bad Request");
        };
        server.during(shown, work).expect("threads");
    }

    #[test]
    fn a_reader_that_does_not_read_is_given_up() {
        let server = server(Duration::from_millis(200));
        let is_made = AtomicBool::new(false);
        // More than the system keeps for a connection.
        let content = |_| {
            is_made.store(true, Ordering::SeqCst);
            "a".repeat(64 << 20)
        };
        let work = || {
            let mut stream = connect(&server);
            let request = format!("GET /?token={} HTTP/1.1\r\nHost: localhost\r\n\r\n", server.token);
            stream.write_all(request.as_bytes()).expect("it reads");
            // The others are served meanwhile.
            assert!(get(&server, "/elsewhere").starts_with("HTTP/1.1 404"));
            while !is_made.load(Ordering::SeqCst) {
                thread::park_timeout(Duration::from_millis(1));
            }
            thread::park_timeout(10 * server.longest);
            // What the system has kept, and not the whole answer.
            let mut read = Vec::new();
            let _ = stream.read_to_end(&mut read);
            assert!(read.starts_with(b"HTTP/1.1 200 OK") && read.len() < 64 << 20, "{}", read.len());
        };
        server.during(content, work).expect("threads");
    }

    #[test]
    fn a_page_that_cannot_be_made_ends_only_its_connection() {
        let server = server(ENDLESS);
        let content = |wanted| match wanted {
            Wanted::Page => panic!("no page"),
            Wanted::Data => shown(wanted),
        };
        let work = || (get(&server, "/"), get(&server, "/data.json"));
        let (page, data) = server.during(content, work).expect("threads");
        assert_eq!(page, "");
        assert!(data.ends_with("Data \u{e9}"), "{data}");
    }

    #[test]
    fn connections_are_bounded() {
        let server = server(ENDLESS);
        let work = || {
            // Silent ones, and some that begin a request and do not end it.
            let mut idle: Vec<TcpStream> = (0..2 * MOST).map(|_| connect(&server)).collect();
            for stream in idle.iter_mut().skip(MOST) {
                // It may be closed already.
                let _ = stream.write_all(b"GET / HT");
            }
            assert!(get(&server, "/").ends_with("Page \u{e9}"), "they keep nobody out");
            assert_eq!(answer(idle.remove(0)), "", "the first of them are closed");
        };
        server.during(shown, work).expect("threads");
    }

    #[test]
    fn a_panic_of_the_work_ends_the_server() {
        let server = server(ENDLESS);
        let mut idle = None;
        let work = || {
            idle = Some(connect(&server));
            // It is accepted after the other.
            assert!(!get(&server, "/").is_empty());
            panic!("the work");
        };
        assert!(catch_unwind(AssertUnwindSafe(|| server.during(shown, work))).is_err());
        let idle = idle.expect("it connected");
        assert_eq!(answer(idle), "");
    }
}
