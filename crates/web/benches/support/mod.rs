//! A real server for a bench, asked over sockets.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use pgdyno_web::{AccessOptions, BasePath, Options, serve};

/// Does `work` with the address of a server of `store`.
pub(crate) fn serving<T>(store: &Path, work: impl FnOnce(SocketAddr) -> T) -> T {
    let options = Options {
        store: store.to_owned(),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        access: AccessOptions::default(),
        allow_control: false,
        base_path: BasePath::default(),
    };
    let stop = AtomicBool::new(false);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&options, &stop, |ready| send.send(ready).unwrap()));
        let url = receive.recv().unwrap().url;
        let address = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
        let result = work(address);
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        result
    })
}

/// Asks for `path`; the answer is to be read, head and body.
pub(crate) fn get(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}
