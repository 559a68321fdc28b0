//! `pgdyno serve` under attack: foreign pages, no token, odd paths, markup, slow clients, and what
//! it refuses to start with.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::serve_support::Served;
use crate::support::World;
use pgdyno_model::record::SessionEnd;
use pgdyno_store::Store;
use pgdyno_test_support::records::Random;
use pgdyno_test_support::{assert_contains, synthetic};
use serde_json::json;

const TOKEN: &str = "0123456789abcdef-token";

/// A store with one run of that name.
fn store_of(world: &World, id: &str) -> PathBuf {
    let path = world.path("store.sqlite3");
    let plan = synthetic::plan(&["a"], 2, &mut Random(1));
    synthetic::add(&mut Store::open(&path).unwrap(), (id, 1), &plan, |_| 100.0);
    path
}

fn token_file(world: &World, text: &str, mode: u32) -> PathBuf {
    let path = world.file("token", text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// Serves with `options`, which must fail: what standard error says.
fn refused(world: &World, store: &Path, options: &[&str]) -> String {
    let arguments = [&["serve", "--store", store.to_str().unwrap()], options].concat();
    let ended = world.run(&arguments).exits(1);
    assert!(ended.err.contains("error: cannot ") || ended.err.contains("error: "), "{}", ended.err);
    ended.says("\nhelp: ");
    ended.err
}

#[test]
fn a_host_by_another_name_is_refused() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    let served = Served::start(&world, &path, &["--host", "bench.example.org"]);
    let as_host =
        |host: &str| served.send("GET /api/runs", &format!("Host: {host}\r\n"), "").status;
    let port = served.address.rsplit_once(':').unwrap().1;
    assert_eq!(as_host("evil.example"), 403);
    assert_eq!(as_host(&format!("127.0.0.1.evil.example:{port}")), 403);
    assert_eq!(as_host("localhost.evil.example"), 403);
    assert_eq!(as_host(&format!("localhost:{port}")), 200);
    assert_eq!(as_host("[::1]"), 200);
    assert_eq!(as_host("Bench.Example.org."), 200);
    assert_eq!(served.send("GET /api/runs", "", "").status, 400);
}

#[test]
fn a_page_of_another_site_neither_reads_nor_writes() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    let served = Served::start(&world, &path, &[]);
    let note = json!({ "text": "x", "tags": [] });
    let own = format!("Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", served.address);
    for foreign in [
        "Origin: http://evil.example\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        "Origin: http://127.0.0.1:1\r\n".to_owned(),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
        "Sec-Fetch-Site: same-site\r\n".to_owned(),
        format!("Origin: http://{}.evil.example\r\n", served.address),
    ] {
        assert_eq!(served.write_note("run-1", &note, &foreign).status, 403, "{foreign}");
        assert_eq!(served.get_with("/api/runs", &foreign).status, 403, "{foreign}");
    }
    assert_eq!(served.write_note("run-1", &note, &own).status, 200);
    assert_eq!(served.get_with("/", "Sec-Fetch-Site: cross-site\r\n").status, 200, "a link");
    let preflight = "Origin: http://evil.example\r\nAccess-Control-Request-Method: PUT\r\n";
    let host = format!("Host: {}\r\n{preflight}", served.address);
    let answer = served.send("OPTIONS /api/notes/run-1", &host, "");
    assert!(answer.status >= 400 && !answer.head.contains("access-control-"), "{}", answer.head);
}

#[test]
fn without_the_token_nothing_is_said() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    let file = token_file(&world, &format!("{TOKEN}\n"), 0o600);
    let served = Served::start(&world, &path, &["--token-file", file.to_str().unwrap()]);
    assert!(served.url.ends_with(&format!("/?token={TOKEN}")), "{}", served.url);
    for path in ["/", "/api/runs", "/api/page/run-1", "/api/live/x", "/?token=wrong-token-0123456"]
    {
        let answer = served.get(path);
        assert_eq!(answer.status, 401, "{path}");
        assert!(!answer.body.contains("run-1") && !answer.body.contains(TOKEN), "{path}");
    }
    let note = json!({ "text": "x", "tags": [] });
    assert_eq!(served.write_note("run-1", &note, "").status, 401);
    let visit = served.get(&format!("/runs/run-1?a=b&token={TOKEN}"));
    assert_eq!(visit.status, 303);
    assert_contains(&visit.head, &["location: /runs/run-1?a=b\r\n", "; httponly; samesite=lax"]);
    assert_eq!(visit.body, "");
    let elsewhere = served.get(&format!("//evil.example/?token={TOKEN}"));
    assert!(elsewhere.head.contains("location: /evil.example/"), "{}", elsewhere.head);
    let cookie = visit.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(served.get_with("/api/runs", &format!("Cookie: other=1; {cookie}\r\n")).status, 200);
    let (name, _) = cookie.split_once('=').unwrap();
    let wrong = format!("Cookie: {name}={}\r\n", TOKEN.replace('0', "1"));
    assert_eq!(served.get_with("/api/runs", &wrong).status, 401);
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(served.get_with("/api/runs", &bearer).status, 200);
}

#[test]
fn under_a_path_of_a_proxy_pages_requests_and_the_cookie_stay_there() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    let file = token_file(&world, TOKEN, 0o600);
    let options = ["--base-path", "/lab/pgdyno/", "--token-file", file.to_str().unwrap()];
    let served = Served::start(&world, &path, &options);
    assert!(served.url.ends_with(&format!("/lab/pgdyno/?token={TOKEN}")), "{}", served.url);
    // A proxy may take the path off.
    for base in ["/lab/pgdyno", ""] {
        let visit = served.get(&format!("{base}/runs/run-1?token={TOKEN}"));
        assert_eq!(visit.status, 303);
        assert_contains(
            &visit.head,
            &["location: /lab/pgdyno/runs/run-1\r\n", "; path=/lab/pgdyno/; "],
        );
        assert_eq!(served.get(&format!("{base}/api/runs")).status, 401);
        let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
        let list = served.get_with(&format!("{base}/api/runs"), &bearer);
        assert!(list.status == 200 && list.body.contains("run-1"), "{}", list.body);
        let page = served.get_with(&format!("{base}/runs/run-1"), &bearer);
        assert!(page.body.contains("{\"base\":\"/lab/pgdyno\"}"), "{}", page.head);
    }
    let error = refused(&world, &path, &["--base-path", "lab/<b>"]);
    assert!(error.contains("`lab/<b>` is no path"), "{error}");
    // A proxy that does not pass the host on.
    let headers = format!("Authorization: Bearer {TOKEN}\r\nOrigin: https://bench.example.org\r\n");
    let note = served.write_note("run-1", &json!({ "text": "x", "tags": [] }), &headers);
    assert!(note.status == 403 && note.error().1.unwrap().contains("`Host`"), "{}", note.body);
}

#[test]
fn beyond_this_machine_a_token_is_drawn() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    let served = Served::start(&world, &path, &["--listen", "0.0.0.0:0"]);
    let token = served.url.split_once("?token=").unwrap().1;
    assert_eq!(token.len(), 64, "{}", served.url);
    assert_eq!(served.get("/api/runs").status, 401);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(served.get_with("/api/runs", &bearer).status, 200);
    let other = Served::start(&world, &path, &["--listen", "0.0.0.0:0"]);
    assert!(!other.url.ends_with(token), "drawn anew");
}

#[test]
fn a_token_that_others_know_or_guess_is_refused() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    for (text, mode) in
        [(TOKEN, 0o644), ("short", 0o600), ("", 0o600), ("0123456789abcdef &x", 0o600)]
    {
        let file = token_file(&world, text, mode);
        let said =
            refused(&world, &path, &["--listen", "0", "--token-file", file.to_str().unwrap()]);
        assert!(said.contains("cannot use the token in"), "{said}");
    }
    let missing = refused(&world, &path, &["--listen", "0", "--token-file", "/none/such"]);
    assert!(missing.contains("cannot read the token in /none/such"), "{missing}");
}

#[test]
fn what_cannot_be_served_is_told_before_anything_listens() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refused(&world, &path, &["--listen", &address]);
    assert!(said.contains(&format!("cannot listen on {address}")), "{said}");
    let said = refused(&world, &world.path("none.sqlite3"), &["--listen", "0"]);
    assert!(said.contains("there is no store at"), "{said}");
    assert!(!world.path("none.sqlite3").exists());
    let said = refused(&world, &world.disk(), &["--listen", "0"]);
    assert!(said.contains("is not a pgdyno store"), "{said}");
    let newer = world.path("newer.sqlite3");
    std::fs::copy(&path, &newer).unwrap();
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 900).unwrap();
    let said = refused(&world, &newer, &["--listen", "0"]);
    assert!(said.contains("a newer pgdyno wrote it"), "{said}");
}

#[test]
fn no_path_leads_out_of_the_store() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    world.file("secret.jsonl", "{\"secret\":1}\n");
    let served = Served::start(&world, &path, &["--allow-control"]);
    for id in
        ["../secret", "..%2fsecret", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "a%2fb", "..", "%ff"]
    {
        for kind in ["page", "show", "live", "notes"] {
            let answer = served.get(&format!("/api/{kind}/{id}"));
            let known = [400, 404].contains(&answer.status);
            // A client that follows `..` asks for another path.
            let is_front_end = answer.body.starts_with("<!doctype html>");
            assert!(known || is_front_end, "{kind}/{id}: {} {}", answer.status, answer.body);
            assert!(!answer.body.contains("secret\":1") && !answer.body.contains("root:"), "{id}");
        }
        let host = format!("Host: {}\r\n", served.address);
        let stop = served.send(&format!("POST /api/live/{id}/stop"), &host, "");
        assert!([400, 404, 405].contains(&stop.status), "{id}: {}", stop.status);
    }
    assert_eq!(served.get("/api/page/run-1/trials/99").status, 404);
    assert_eq!(served.get("/api/page/run-1/trials/x").status, 400);
    assert_eq!(served.get("/api/none").status, 404);
}

#[test]
fn markup_in_the_store_stays_text() {
    let world = World::new();
    let markup = "<script>alert(1)</script>&\u{202e}";
    let id = format!("run{markup}");
    let path = world.path("store.sqlite3");
    let mut store = Store::open(&path).unwrap();
    let mut plan = synthetic::plan(&[markup, "b"], 2, &mut Random(1));
    (plan.name, plan.question) = (markup.to_owned(), Some(markup.to_owned()));
    for treatment in &mut plan.treatments {
        (treatment.storage, treatment.workload) = (markup.to_owned(), markup.to_owned());
        treatment.settings.insert(markup.to_owned(), markup.to_owned());
    }
    let session = synthetic::begin(&mut store, &id, markup, 1, &plan);
    for planned in &plan.trials {
        let mut trial = synthetic::trial(&plan, planned, 100.0, 20);
        trial.server_log = markup.to_owned();
        trial.server.as_mut().unwrap().version = markup.to_owned();
        store.add_trial(&id, session, &trial).unwrap();
    }
    store.end_session(session, SessionEnd::Completed).unwrap();
    let served = Served::start(&world, &path, &[]);
    let encode = |text: &str| -> String { text.bytes().map(|b| format!("%{b:02x}")).collect() };
    let (encoded, encoded_markup) = (encode(&id), encode(markup));
    let note = json!({ "text": markup, "tags": [markup] });
    assert_eq!(served.write_note(&encoded, &note, "").status, 200);
    for path in [
        "/api/runs".to_owned(),
        format!("/api/page/{encoded}"),
        format!("/api/show/{encoded}"),
        format!("/api/notes/{encoded}"),
        format!("/api/history?recipe={encoded_markup}"),
        format!("/api/compare?a={encoded}&b={encoded}"),
        format!("/api/live/{encoded}"),
        format!("/api/none/{encoded}"),
    ] {
        let answer = served.get(&path);
        assert!(answer.head.contains("content-type: application/json"), "{path}: {}", answer.head);
        assert!(answer.head.contains("nosniff"), "{path}");
        assert!(!answer.body.contains(['<', '\u{202e}']), "{path}: {}", answer.body);
    }
    let page = served.get(&format!("/runs/{encoded}"));
    assert!(!page.body.contains("alert(1)"));
    let host = served.send("GET /", "Host: <script>alert(1)</script>\r\n", "");
    assert!(host.status == 400 && !host.body.contains("<script"), "{}", host.body);
}

#[test]
fn a_slow_client_costs_nobody_else_anything() {
    let world = World::new();
    let path = store_of(&world, "run-1");
    let served = Served::start(&world, &path, &[]);
    let slow: Vec<_> = (0..40)
        .map(|n| {
            let mut stream = served.connect();
            let head = if n % 2 == 0 {
                "GET /api/runs HTTP/1.1\r\nHost: local".to_owned()
            } else {
                format!(
                    "PUT /api/notes/run-1 HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n{{",
                    served.address
                )
            };
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(served.get("/api/runs").status, 200);
    // Heads beyond any bound are not collected.
    let mut endless = served.connect();
    let line = format!("X-{}: y\r\n", "x".repeat(1000));
    let sent = endless
        .write_all(b"GET / HTTP/1.1\r\n")
        .and_then(|()| (0..1000).try_for_each(|_| endless.write_all(line.as_bytes())));
    let mut answer = String::new();
    let read = endless.read_to_string(&mut answer);
    assert!(sent.is_err() || read.is_err() || answer.contains(" 431 "), "{answer}");
    assert_eq!(served.end(), Some(0), "also with slow clients");
    drop(slow);
}

#[test]
#[ignore = "long: whoever stands still is waited for"]
fn clients_that_stand_still_keep_no_place_for_good() {
    let world = World::new();
    let served = Served::start(&world, &store_of(&world, "run-1"), &[]);
    let host = format!("Host: {}\r\n", served.address);
    let half = format!("PUT /api/notes/run-1 HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n{{");
    // More than the kernel keeps for whoever reads nothing.
    let many = format!("GET / HTTP/1.1\r\n{host}\r\n").repeat(60);
    for request in [half, many] {
        // There are 256 places.
        let still: Vec<_> = (0..260)
            .map(|_| {
                let mut stream = served.connect();
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        // The test waits for a minute at most.
        assert_eq!(served.get("/api/info").status, 200);
        drop(still);
    }
    assert_eq!(served.end(), Some(0));
}
