//! What a browser asks for: one request of HTTP, of which only the head is read, and who may ask.
//!
//! `httparse` reads heads: it depends on nothing. A server of HTTP as a library would bring a pool of
//! threads, bodies, and connections that stay open, none of which is needed here, and would not bound the
//! time of a request.

use httparse::{EMPTY_HEADER, Status};

/// The most bytes of a head.
pub(super) const LONGEST: usize = 8 << 10;

/// The most lines of a head.
const MOST_LINES: usize = 64;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The page.
    Page,
    /// The data of the page.
    Data,
}

/// A refusal: its status, and a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) &'static str, pub(super) &'static str);

const TORN: Refused = Refused("400 Bad Request", "This is no whole request of HTTP.");
const LONG: Refused = Refused("400 Bad Request", "The request is too long.");
const HOST: Refused = Refused("403 Forbidden", "The request is for another host.");
const METHOD: Refused = Refused("405 Method Not Allowed", "There is only GET.");
const TOKEN: Refused = Refused("403 Forbidden", "The address has not the token that the command printed.");
const PLACE: Refused = Refused("404 Not Found", "There is only the page, and its data in /data.json.");

/// What the beginning of a request asks for. `None` if its head is not whole yet. Whoever asks must have the
/// token, and must have the address of this machine: the page of another site, whose name resolves to it,
/// would send that name as the host.
pub(super) fn wanted(bytes: &[u8], token: &str) -> Result<Option<Wanted>, Refused> {
    let mut lines = [EMPTY_HEADER; MOST_LINES];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) if bytes.len() < LONGEST => return Ok(None),
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Err(LONG),
        Err(_) => return Err(TORN),
    }
    let mut hosts = request.headers.iter().filter(|line| line.name.eq_ignore_ascii_case("host"));
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(TORN) };
    if !is_this_machine(host.value) {
        return Err(HOST);
    }
    if request.method != Some("GET") {
        return Err(METHOD);
    }
    let path = request.path.unwrap_or_default();
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    let mut tokens = query.split('&').filter_map(|part| part.strip_prefix("token="));
    if !tokens.next().is_some_and(|given| is_same(given, token)) {
        return Err(TOKEN);
    }
    match place {
        "/" => Ok(Some(Wanted::Page)),
        "/data.json" => Ok(Some(Wanted::Data)),
        _ => Err(PLACE),
    }
}

/// The refusal of a request that ended, or that took too long, before its head was whole.
pub(super) fn torn() -> Refused {
    TORN
}

/// Whether the host of a request is this machine by its loopback address. Its port is that of a tunnel, if
/// there is one.
fn is_this_machine(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (name, port) = host.trim().split_once(':').unwrap_or((host.trim(), "80"));
    (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")) && port.parse::<u16>().is_ok()
}

/// Whether a token is the right one. The time that this takes does not tell how much of it is right.
fn is_same(given: &str, token: &str) -> bool {
    let differ = given.bytes().zip(token.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(first: &str, lines: &str) -> Result<Option<Wanted>, Refused> {
        wanted(format!("{first} HTTP/1.1\r\n{lines}\r\n").as_bytes(), "5ec2e7")
    }

    #[test]
    fn who_has_the_token_gets_the_page_and_its_data() {
        for host in ["127.0.0.1:4000", "127.0.0.1", "localhost:9", "LOCALHOST"] {
            let lines = format!("Accept: */*\r\nhOsT: {host}\r\n");
            assert_eq!(asks("GET /?token=5ec2e7", &lines), Ok(Some(Wanted::Page)), "{host}");
            assert_eq!(asks("GET /data.json?now&token=5ec2e7", &lines), Ok(Some(Wanted::Data)), "{host}");
        }
    }

    #[test]
    fn anybody_else_is_refused() {
        let here = "Host: 127.0.0.1:4000\r\n";
        for token in
            ["", "?", "?token", "?token=", "?token=5ec2e", "?token=5ec2e77", "?token=5ec2e8", "?Token=5ec2e7"]
        {
            assert_eq!(asks(&format!("GET /{token}"), here), Err(TOKEN), "{token}");
            assert_eq!(asks(&format!("GET /elsewhere{token}"), here), Err(TOKEN), "{token}");
        }
        // The first one counts, as no browser sends two.
        assert_eq!(asks("GET /?token=1&token=5ec2e7", here), Err(TOKEN));
        for host in [
            "example.com",
            "example.com:4000",
            "127.0.0.1.example.com",
            "localhost.example.com:80",
            "127.0.0.1:4000:80",
            "127.0.0.1:x",
            "127.0.0.1:",
            "127.0.0.2",
            "[::1]:4000",
            "",
            "user@127.0.0.1",
        ] {
            assert_eq!(asks("GET /?token=5ec2e7", &format!("Host: {host}\r\n")), Err(HOST), "{host}");
        }
        assert_eq!(wanted(b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n", "5ec2e7"), Err(HOST));
        for method in ["POST", "HEAD", "PUT", "OPTIONS", "get", "X"] {
            assert_eq!(asks(&format!("{method} /?token=5ec2e7"), here), Err(METHOD), "{method}");
        }
        for place in ["/index.html", "//", "/data.json/", "/../data.json", "http://127.0.0.1/"] {
            assert_eq!(asks(&format!("GET {place}?token=5ec2e7"), here), Err(PLACE), "{place}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_and_a_part_of_one_is_waited_for() {
        let whole = "GET /?token=5ec2e7 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(wanted(&whole.as_bytes()[..end], "5ec2e7"), Ok(None), "{end}");
        }
        assert_eq!(wanted(whole.as_bytes(), "5ec2e7"), Ok(Some(Wanted::Page)));
        for torn in [
            "\0",
            "\x16\x03\x01\x02",
            "GET /\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n",
        ] {
            assert_eq!(wanted(torn.as_bytes(), "5ec2e7"), Err(TORN), "{torn:?}");
        }
        assert_eq!(asks("GET /?token=5ec2e7", ""), Err(TORN), "no host");
        assert_eq!(asks("GET /?token=5ec2e7", "Host: localhost\r\nHost: localhost\r\n"), Err(TORN));
        let long = format!("GET /{}", "a".repeat(LONGEST));
        assert_eq!(wanted(&long.as_bytes()[..LONGEST], "5ec2e7"), Err(LONG));
        assert_eq!(asks("GET /?token=5ec2e7", &"A: b\r\n".repeat(MOST_LINES + 1)), Err(LONG));
    }
}
