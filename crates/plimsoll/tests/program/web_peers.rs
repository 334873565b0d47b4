//! Foreign web servers that log every request: nginx and Caddy.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::tls::TestCertificate;
use serde_json::Value;
use tempfile::TempDir;

use plimsoll_testkit::program::{Running, wait_until};

/// Common name of a client that the servers know.
pub const CLIENT: &str = "ann";
/// All of them, each with its folder of certificate and key, in `both.pem` together.
pub const CLIENTS: [(&str, &str); 2] = [(CLIENT, "client"), ("bob", "other_client")];
/// Logged header fields.
const FIELDS: [&str; 8] = [
    "accept",
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "x-one",
    "x-three",
    "x-two",
];

/// A server of another program, on a port, on a Unix socket and, with TLS, on one more port.
pub struct WebPeer {
    pub name: &'static str,
    pub port: u16,
    pub tls_port: u16,
    _process: Running,
    temp_dir: TempDir,
    entry: fn(&Value) -> Option<LoggedRequest>,
}

/// A request in the server's log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedRequest {
    pub method: String,
    pub target: String,
    pub status: u64,
    pub protocol: String,
    /// The host that it was addressed to.
    pub host: String,
    /// Identifies its connection.
    pub connection: String,
    /// When it was answered, in seconds.
    pub at_s: f64,
    pub body: String,
    /// Those of [`FIELDS`] that it had.
    pub fields: BTreeMap<String, String>,
    /// It came over TLS.
    pub tls: bool,
    /// Its connection resumed the TLS session of an earlier one.
    pub is_resumed: bool,
    /// The common name of the client's certificate, where there was one.
    pub client: String,
}

impl WebPeer {
    /// Those that are installed.
    pub fn all() -> Vec<Self> {
        [Self::nginx(), Self::caddy()].into_iter().flatten().collect()
    }

    /// The bodies of requests are known only to one that passes them on.
    pub fn nginx() -> Option<Self> {
        let program = require_peer("nginx")?;
        let fields = FIELDS.map(|name| format!("\"{name}\":\"$http_{}\"", name.replace('-', "_")));
        let fields = fields.join(",");
        let config = |[port, tls_port]: [u16; 2], dir: &Path| {
            let dir = dir.display();
            format!(
                "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\n\
                 events {{}}\nhttp {{\nlog_format seen escape=json '{{\
                 \"method\":\"$request_method\",\"target\":\"$request_uri\",\"status\":$status,\
                 \"protocol\":\"$server_protocol\",\"connection\":\"$connection\",\
                 \"host\":\"$http_host\",\"at_s\":$msec,\"body\":\"$request_body\",\
                 \"fields\":{{{fields}}},\"tls\":\"$ssl_protocol\",\
                 \"resumed\":\"$ssl_session_reused\",\
                 \"client\":\"$ssl_client_s_dn\"}}';\n\
                 access_log {dir}/log seen;\n\
                 access_log {dir}/combined combined;\nclient_body_temp_path {dir}/body;\n\
                 client_body_buffer_size 64k;\nproxy_temp_path {dir}/proxy;\n\
                 ssl_certificate {dir}/certificate.pem;\n\
                 ssl_certificate_key {dir}/key.pem;\n\
                 ssl_client_certificate {dir}/clients.pem;\n\
                 ssl_verify_client optional;\n\
                 server {{ listen 127.0.0.1:{port}; listen unix:{dir}/socket;\n\
                 listen 127.0.0.1:{tls_port} ssl http2; listen unix:{dir}/h2 http2;\n\
                 location /files/ {{ root {dir}; }}\n\
                 location / {{ proxy_pass http://unix:{dir}/inner; }} }}\n\
                 server {{ listen unix:{dir}/inner; access_log off;\n\
                 location = /404 {{ return 404; }}\n\
                 location / {{ return 200 \"hello\"; }} }}\n}}\n"
            )
        };
        let arguments = |dir: &Path| {
            let config = dir.join("config");
            let texts = ["-p".into(), dir.into(), "-c".into(), config, "-e".into()];
            texts.into_iter().chain(["stderr".into()]).collect()
        };
        Some(Self::start("nginx", program, config, arguments, nginx_entry))
    }

    /// The log of nginx in its usual format.
    pub fn combined_log(&self) -> PathBuf {
        self.temp_dir.path().join("combined")
    }

    /// Its log has the fields of its replies, so it adds the request's body to one of them.
    fn caddy() -> Option<Self> {
        let program = require_peer("caddy")?;
        let config = |[port, tls_port]: [u16; 2], dir: &Path| {
            let dir = dir.display();
            format!(
                "{{\nadmin off\nauto_https off\nservers {{\nlog_credentials\nprotocols h1 h2 h2c\n}}\n}}\n\
                 (seen) {{\nlog {{\noutput file {dir}/log\nformat json\n}}\n\
                 header X-Body \"{{http.request.body}}\"\n\
                 respond /404 404\nrespond \"hello\" 200\n}}\n\
                 http://:{port} {{\nbind 127.0.0.1 unix/{dir}/socket\nimport seen\n}}\n\
                 https://localhost:{tls_port} {{\nbind 127.0.0.1\n\
                 tls {dir}/certificate.pem {dir}/key.pem {{\nclient_auth {{\n\
                 mode verify_if_given\ntrusted_ca_cert_file {dir}/client/certificate.pem\n\
                 trusted_ca_cert_file {dir}/other_client/certificate.pem\n\
                 }}\n}}\nimport seen\n}}\n"
            )
        };
        let arguments = |dir: &Path| {
            let config = dir.join("config");
            ["run".into(), "--adapter".into(), "caddyfile".into(), "--config".into(), config].into()
        };
        Some(Self::start("caddy", program, config, arguments, caddy_entry))
    }

    fn start(
        name: &'static str,
        program: PathBuf,
        config: impl Fn([u16; 2], &Path) -> String,
        arguments: impl Fn(&Path) -> Vec<PathBuf>,
        entry: fn(&Value) -> Option<LoggedRequest>,
    ) -> Self {
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, tls_port] = free.each_ref().map(|free| free.local_addr().unwrap().port());
        drop(free);
        let temp_dir = TempDir::new().unwrap();
        TestCertificate::new().write_into(temp_dir.path());
        let mut trusted = String::new();
        for (name, folder) in CLIENTS {
            let folder = temp_dir.path().join(folder);
            fs::create_dir(&folder).unwrap();
            let certificate = TestCertificate::of_client(name);
            certificate.write_into(&folder);
            trusted += &certificate.certificate_pem;
            let both = format!("{}{}", certificate.certificate_pem, certificate.key_pem);
            fs::write(folder.join("both.pem"), both).unwrap();
        }
        fs::write(temp_dir.path().join("clients.pem"), trusted).unwrap();
        fs::write(temp_dir.path().join("config"), config([port, tls_port], temp_dir.path()))
            .unwrap();
        let mut command = Command::new(program);
        command
            .args(arguments(temp_dir.path()))
            .env("HOME", temp_dir.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME");
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A port that was free a moment ago may still be in use by a child that is being started.
        for port in [port, tls_port] {
            wait_until(name, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        }
        Self { name, port, tls_port, _process: Running(process), temp_dir, entry }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn tls_url(&self, path: &str) -> String {
        format!("https://localhost:{}/{path}", self.tls_port)
    }

    /// A file in its folder: its socket, its certificate and key, in [`CLIENTS`] those of clients,
    /// and in nginx's `files` the served ones.
    pub fn file(&self, name: &str) -> String {
        self.temp_dir.path().join(name).display().to_string()
    }

    /// Its socket of HTTP/2 without TLS: Caddy's is that of HTTP/1.1.
    pub fn h2_socket(&self) -> String {
        self.file(if self.name == "nginx" { "h2" } else { "socket" })
    }

    /// Requests in the order of their answers, once there are `total` of them.
    #[track_caller]
    pub fn logged_requests(&self, total: u64) -> Vec<LoggedRequest> {
        let mut requests = Vec::new();
        wait_until("the log is written", || {
            requests = self.log();
            requests.len() as u64 >= total
        });
        requests.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        requests
    }

    /// How often its log has each `METHOD target status`, once it has `total` in all.
    #[track_caller]
    pub fn log_of(&self, total: u64) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for LoggedRequest { method, target, status, .. } in self.logged_requests(total) {
            *counts.entry(format!("{method} {target} {status}")).or_default() += 1;
        }
        counts
    }

    fn log(&self) -> Vec<LoggedRequest> {
        let text = fs::read_to_string(self.temp_dir.path().join("log")).unwrap_or_default();
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        entries.filter_map(|entry| (self.entry)(&entry)).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn nginx_entry(entry: &Value) -> Option<LoggedRequest> {
    let fields = FIELDS.iter().map(|name| ((*name).to_owned(), text(&entry["fields"][name])));
    Some(LoggedRequest {
        method: text(&entry["method"]),
        target: text(&entry["target"]),
        status: entry["status"].as_u64()?,
        protocol: text(&entry["protocol"]),
        host: text(&entry["host"]),
        connection: text(&entry["connection"]),
        at_s: entry["at_s"].as_f64()?,
        body: text(&entry["body"]),
        fields: fields.filter(|(_, value)| !value.is_empty()).collect(),
        tls: !text(&entry["tls"]).is_empty(),
        is_resumed: entry["resumed"] == "r",
        client: text(&entry["client"]),
    })
}

fn caddy_entry(entry: &Value) -> Option<LoggedRequest> {
    let request = entry.get("request")?;
    let headers = request["headers"].as_object()?;
    let fields = headers.iter().map(|(name, values)| (name.to_lowercase(), text(&values[0])));
    let tls = &request["tls"];
    let client = text(&tls["client_common_name"]);
    Some(LoggedRequest {
        method: text(&request["method"]),
        target: text(&request["uri"]),
        status: entry["status"].as_u64()?,
        protocol: text(&request["proto"]),
        host: text(&request["host"]),
        connection: text(&request["remote_port"]),
        at_s: entry["ts"].as_f64()?,
        body: text(&entry["resp_headers"]["X-Body"][0]),
        fields: fields.filter(|(name, _)| FIELDS.contains(&&**name)).collect(),
        tls: tls.is_object(),
        is_resumed: tls["resumed"] == true,
        client: if client.is_empty() { client } else { format!("CN={client}") },
    })
}
