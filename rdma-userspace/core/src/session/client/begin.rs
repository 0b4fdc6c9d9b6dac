//! The beginning of a session: what client and server agree on, and the probes of both.
use super::Session;
use crate::machine::device::kernel_driver;
use crate::machine::kernel_threads;
use crate::probes::{ProbeSelection, ProbeThread};
use crate::session::peer::Peer;
use crate::session::peer_capture::PeerCaptureRequest;
use crate::session::progress::Progress;
use crate::session::{Options, SessionError, placement};
use crate::verbs::{Device, choose_pair, gid_table};
use capture::Level;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Sets the session up. Both sides load their probes at the same time, where both have a kernel of their own.
pub(super) async fn begin(
    options: Options,
    device: Device,
    probes: ProbeThread,
    server_answers: bool,
    peer: &mut Peer,
    progress: &mut Progress,
) -> Result<Session, SessionError> {
    let mut request = PeerCaptureRequest { wanted: options.peer_capture && server_answers, ..PeerCaptureRequest::default() };
    let same_kernel = crate::machine::host::host().boot_id == peer.facts.boot_id;
    let ask = request.wanted && options.level != Level::None && !same_kernel;
    if ask {
        peer.load_probes(options.level).await?;
    }
    let mut session = Session::new(options, device, probes, peer, progress)?;
    if ask {
        let (why_not, summary) = peer.probes_loaded().await?;
        progress.say("server's probes", &summary);
        request.probes = why_not.is_none() && session.can_trace()?;
        request.note = match why_not {
            Some(why) => Some(format!("no probes on the server: {why}; its kernel stages are absent")),
            None if !request.probes => Some("the server attached no probes, since the client has none and made no traced round".to_owned()),
            None => None,
        };
    } else if request.wanted && same_kernel {
        request.note = Some("the server shares the client's kernel and attached no second set of probes".to_owned());
    }
    session.peer_capture = request;
    Ok(session)
}

impl Session {
    fn new(options: Options, device: Device, probes: ProbeThread, peer: &Peer, progress: &mut Progress) -> Result<Session, SessionError> {
        let same_kernel = crate::machine::host::host().boot_id == peer.facts.boot_id;
        let gids =
            choose_pair(&gid_table(&device, options.port)?, &peer.facts.gids, same_kernel, options.gid_index, options.server_gid_index)?;
        progress.say("agree", &format!("GID {} here and {} there: {}", gids.local.index, gids.remote.index, gids.reason));
        let cpus = placement::choose(&options, &peer.facts, same_kernel)?;
        progress.say("agree", &cpus.to_string());
        probes.load(ProbeSelection {
            level: options.level,
            arrivals: options.arrivals(),
            device_driver: kernel_driver(device.name()),
            ring_bytes: options.ring_bytes,
        });
        progress.say("probes", &probes.run(|it| it.summary())?);
        let pinned = [Some(cpus.client), same_kernel.then_some(cpus.server)];
        let pinned: Vec<Option<u32>> = pinned.into_iter().flatten().collect();
        let threads = kernel_threads::in_path(device.name(), &pinned);
        let threads = probes.run(move |it| it.track_kernel_threads(threads))??;
        let (interrupted, stopped) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (notify, flag) = (Arc::clone(&interrupted), Arc::clone(&stopped));
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                flag.store(true, Ordering::Relaxed);
                notify.notify_one();
            }
        });
        let abort = Arc::new(AtomicBool::new(false));
        Ok(Session {
            options,
            device,
            gids,
            cpus,
            probes,
            threads,
            peer_capture: PeerCaptureRequest::default(),
            abort,
            interrupted,
            stopped,
            next_run: 0,
        })
    }
}
