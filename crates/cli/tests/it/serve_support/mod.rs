//! A real `pgdyno serve`, asked over sockets of the test's own: every header is the test's.

mod schema;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{World, signal};

/// Longest wait for a byte: a hanging server fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server; it ends with this value.
pub struct Served {
    child: Child,
    /// Address and port.
    pub address: String,
    /// As the server printed it.
    pub url: String,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Served {
    /// Serves `store` with `options` on a free port of this machine.
    pub fn start(world: &World, store: &Path, options: &[&str]) -> Self {
        Self::start_by(world, &[], store, options)
    }

    /// As [`Served::start`]; the command `wrapper` starts the server.
    pub fn start_by(world: &World, wrapper: &[&str], store: &Path, options: &[&str]) -> Self {
        let mut arguments = vec!["serve", "--store", store.to_str().unwrap()];
        if !options.contains(&"--listen") {
            arguments.extend(["--listen", "127.0.0.1:0"]);
        }
        arguments.extend(options);
        let mut command = world.wrapped(wrapper, &arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some((_, url)) = line.trim().rsplit_once(" at ") else {
            let mut errors = String::new();
            child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            panic!("no server: {line}{errors}");
        };
        let rest = url.strip_prefix("http://").unwrap();
        let address = rest.split_once('/').unwrap().0.replace("localhost", "127.0.0.1");
        Self { child, address, url: url.to_owned() }
    }

    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request whose headers are all in `head`, each with its line break.
    pub fn send(&self, line: &str, head: &str, body: &str) -> Answer {
        let mut stream = self.connect();
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\n{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let answer = Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() };
        let (_, target) = line.split_once(' ').unwrap_or_default();
        schema::assert_described(target, &answer);
        answer
    }

    pub fn get_with(&self, path: &str, headers: &str) -> Answer {
        self.send(&format!("GET {path}"), &format!("Host: {}\r\n{headers}", self.address), "")
    }

    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// The document at `path`.
    pub fn document(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    pub fn write_note(&self, id: &str, note: &Value, headers: &str) -> Answer {
        let head = format!("Host: {}\r\nContent-Type: application/json\r\n{headers}", self.address);
        self.send(&format!("PUT /api/notes/{id}"), &head, &note.to_string())
    }

    /// Asks the server to end, and returns its exit status.
    pub fn end(self) -> Option<i32> {
        signal(self.pid(), "TERM");
        self.wait()
    }

    /// Waits for the server's end, and returns its exit status.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// Returns the error's message and its advice.
    pub fn error(&self) -> (String, Option<String>) {
        let document: Value = serde_json::from_str(&self.body).unwrap();
        let help = document["help"].as_str().map(str::to_owned);
        (document["error"].as_str().unwrap().to_owned(), help)
    }
}

/// Events of a run that is watched.
pub struct Events {
    reader: BufReader<TcpStream>,
}

impl Events {
    /// Watches `run`.
    pub fn watch(served: &Served, run: &str) -> Self {
        let mut stream = served.connect();
        let request = format!("GET /api/live/{run} HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
        stream.write_all(request.as_bytes()).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// Waits for the next event: its name and data.
    pub fn wait_for_event(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.reader.read_line(&mut line).unwrap() > 0, "the server ended the events");
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                assert!(!data.contains('<'), "markup: {data}");
                let data = serde_json::from_str(data).unwrap();
                schema::assert_event_described(&name, &data);
                return (name, data);
            }
        }
    }

    /// Whether nothing more comes.
    pub fn is_over(&mut self) -> bool {
        let mut rest = String::new();
        // A connection that the server drops ends here too.
        self.reader.read_to_string(&mut rest).map_or(true, |_| true)
    }
}
