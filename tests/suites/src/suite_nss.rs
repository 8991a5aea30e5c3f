//! Suite `nss`: Mozilla's NSS tools, which reach their cryptography by dlopen and a vector of functions. certutil makes
//! a database, a key and a certificate; selfserv and strsclnt do 200 TLS handshakes over loopback, both on our loader;
//! the counts and exit statuses are those under ld-linux in the same run.

use crate::harness::{Bind, Context, Outcome, Report, Run, WAYS, Way};
use crate::same::label;
use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Full handshakes: no session is used again.
const HANDSHAKES: usize = 200;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for tool in ["certutil", "selfserv", "strsclnt"] {
        ensure!(tool_path(tool).exists(), "{tool} is not installed (Debian package libnss3-tools)");
    }
    let reference = Session::play(context, Way::Reference, Bind::Lazy).context("under ld-linux")?;
    reference.is_whole().map_err(anyhow::Error::msg).context("under ld-linux")?;
    for (way, bind) in WAYS {
        let name = label(way, bind);
        let session = match Session::play(context, way, bind) {
            Ok(session) => session,
            Err(error) => {
                report.check(format!("certutil, selfserv, strsclnt ({name})"), Err(format!("{error:#}")));
                continue;
            }
        };
        report.check(format!("certutil makes a database, a key and a certificate ({name})"), session.has_key());
        report.check(format!("{HANDSHAKES} handshakes ({name})"), session.is_whole());
        let statuses = |session: &Session| [session.client.status, session.server.status];
        report.equal(format!("exit statuses of client and server ({name})"), statuses(&session), statuses(&reference));
    }
    Ok(())
}

fn tool_path(name: &str) -> PathBuf {
    Path::new("/usr/bin").join(name)
}

/// What the tools left.
struct Session {
    keys: Outcome,
    certificate: Outcome,
    client: Outcome,
    server: Outcome,
}

impl Session {
    fn play(context: &Context, way: Way, bind: Bind) -> anyhow::Result<Self> {
        let place = context.work.join(format!("{way:?}-{bind:?}"));
        fs::create_dir(&place)?;
        fs::write(place.join("noise"), [0x5a; 2048])?;
        let tool = |name: &str, arguments: &str| {
            let run = Run::new(tool_path(name)).way(way).bind(bind).directory(&place);
            run.args(["-d", "sql:."]).args(arguments.split(' '))
        };
        let succeed = |arguments: &str| -> anyhow::Result<Outcome> {
            let outcome = tool("certutil", arguments).output(context)?;
            outcome.succeeded().map_err(anyhow::Error::msg)?;
            Ok(outcome)
        };
        succeed("-N --empty-password")?;
        succeed("-S -n server -s CN=localhost -x -t CT,C,C -z noise -k rsa -g 2048 -v 12")?;
        let keys = succeed("-K")?;
        let certificate = succeed("-L -n server")?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let server = tool("selfserv", &format!("-n server -p {port} -V tls1.2: -i process -v")).limit(120);
        let client = tool("strsclnt", &format!("-p {port} -c {HANDSHAKES} -t 4 -N -o -V tls1.2: localhost")).limit(100);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| server.output(context));
            let process = place.join("process");
            let client =
                wait_for_listener(port, &process, || serving.is_finished()).and_then(|()| client.output(context));
            // Without a process id the server ends by its limit.
            let stopped = fs::read_to_string(&process).map(|text| text.trim().parse::<i32>());
            if let Ok(Ok(process)) = stopped
                && !serving.is_finished()
            {
                kill(Pid::from_raw(process), Signal::SIGTERM)?;
            }
            let server = serving.join().map_err(|_| anyhow::anyhow!("the server's thread panicked"))??;
            let client = client.with_context(|| server.describe())?;
            Ok(Self { keys, certificate, client, server })
        })
    }

    fn has_key(&self) -> Result<(), String> {
        let (keys, certificate) = (self.keys.text(), self.certificate.text());
        let key = keys.lines().any(|line| line.starts_with("< 0> rsa ") && line.ends_with("server"));
        if key && certificate.contains("Subject: \"CN=localhost\"") {
            Ok(())
        } else {
            Err(format!("{}\n{}", self.keys.describe(), self.certificate.describe()))
        }
    }

    /// Whether every handshake was done, as both ends count them.
    fn is_whole(&self) -> Result<(), String> {
        let client = format!("NoReuse - {HANDSHAKES} server certificates tested");
        let server = format!("{HANDSHAKES} cache misses");
        let all = |outcome: &Outcome| outcome.text() + &outcome.error_text();
        if all(&self.client).contains(&client) && all(&self.server).contains(&server) {
            Ok(())
        } else {
            let tail = |outcome: &Outcome| {
                let text = all(outcome);
                let lines: Vec<&str> = text.lines().rev().take(8).collect();
                format!("{:?} {}", outcome.status, lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
            };
            Err(format!("client: {}\nserver: {}", tail(&self.client), tail(&self.server)))
        }
    }
}

/// Waits until somebody listens on the port (/proc/net/tcp: state 0A) and the process id is written; a connection made
/// to find out would be counted.
fn wait_for_listener(port: u16, process: &Path, ended: impl Fn() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    let local = format!(":{port:04X} ");
    while Instant::now() < end && !ended() {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
        let mut lines = tables.iter().flat_map(|table| table.lines());
        if lines.any(|line| line.contains(&local) && line.contains(" 0A ")) && process.exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("selfserv does not listen")
}
