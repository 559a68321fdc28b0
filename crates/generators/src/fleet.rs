//! The workers, and the messages to and from them.
//!
//! Each worker has a thread that writes its orders, stamping exchanges of time as it does, and one
//! that reads its reports, stamping their arrival. Dropping the [`Fleet`] ends all workers.

use std::io::{BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::clock::Nanos;
use crate::error::Fault;
use crate::generators::Generator;
use crate::launch::{Launched, StartProgram, launch};
use crate::protocol::{Order, Report, frame};

/// Time that workers have to end once their orders do.
const ENDING: Duration = Duration::from_secs(2);

/// News of a worker.
pub(crate) enum News {
    /// The worker's process runs.
    Launched(Launched),
    /// The worker sent a report.
    Report(Box<Report>),
    /// The worker sends nothing more. Without a fault, its process is asked how it ended.
    Ended(Option<Fault>),
}

/// Our clock.
#[derive(Clone, Copy)]
pub(crate) struct OurClock(pub(crate) Instant);

impl OurClock {
    pub(crate) fn now(self) -> Nanos {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn instant(self, at: Nanos) -> Instant {
        self.0 + Duration::from_nanos(at)
    }
}

/// News of one worker with the time at which it came.
type Stamped = (usize, Nanos, News);

/// A worker's process, once it runs.
#[derive(Default)]
struct Worker {
    launched: Option<Launched>,
    /// Orders that are to be written; none once they ended.
    orders: Option<Sender<Order>>,
}

/// All workers.
pub(crate) struct Fleet {
    clock: OurClock,
    workers: Vec<Worker>,
    news: Sender<Stamped>,
    inbox: Receiver<Stamped>,
}

impl Fleet {
    /// Starts the workers of `generators`, all at once, and does not wait for them.
    pub(crate) fn start(generators: &[Generator], clock: OurClock, start: StartProgram) -> Self {
        let (news, inbox) = channel();
        for (index, generator) in generators.iter().cloned().enumerate() {
            let news = news.clone();
            std::thread::spawn(move || {
                let launched = match launch(&generator, start) {
                    Ok(launched) => News::Launched(launched),
                    Err(fault) => News::Ended(Some(fault)),
                };
                if let Err(unheard) = news.send((index, clock.now(), launched))
                    && let News::Launched(mut late) = unheard.0.2
                {
                    // The load was over before the worker ran.
                    let _ = late.child.kill();
                    let _ = late.child.wait();
                }
            });
        }
        let workers = generators.iter().map(|_| Worker::default()).collect();
        Self { clock, workers, news, inbox }
    }

    /// Talks to workers that have joined.
    pub(crate) fn joined<R, W>(workers: Vec<(R, W)>, clock: OurClock) -> Self
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        let (news, inbox) = channel();
        let mut fleet = Self { clock, workers: Vec::new(), news, inbox };
        for (index, (reports, orders)) in workers.into_iter().enumerate() {
            fleet.hear(index, reports);
            let orders = Some(fleet.speak(orders));
            fleet.workers.push(Worker { launched: None, orders });
        }
        fleet
    }

    /// Waits for the next report or end of a worker, at most `limit`.
    pub(crate) fn next(&mut self, limit: Duration) -> Option<Stamped> {
        match self.inbox.recv_timeout(limit) {
            Ok((worker, _, News::Launched(launched))) => {
                self.connect(worker, launched);
                None
            }
            Ok((worker, at, News::Ended(None))) => {
                let fault = self.ended(worker);
                Some((worker, at, News::Ended(Some(fault))))
            }
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Sends an order; a worker that is gone tells by itself.
    pub(crate) fn send(&self, worker: usize, order: Order) {
        if let Some(orders) = &self.workers[worker].orders {
            let _ = orders.send(order);
        }
    }

    /// Starts the threads that talk to a worker.
    fn connect(&mut self, worker: usize, mut launched: Launched) {
        let orders = launched.child.stdin.take().map(|stdin| self.speak(stdin));
        if let Some(stdout) = launched.child.stdout.take() {
            self.hear(worker, stdout);
        }
        self.workers[worker] = Worker { launched: Some(launched), orders };
    }

    /// Starts the thread that writes a worker's orders.
    fn speak(&self, orders: impl Write + Send + 'static) -> Sender<Order> {
        let (sender, outbox) = channel();
        let clock = self.clock;
        std::thread::spawn(move || write_orders(orders, &outbox, clock));
        sender
    }

    /// Starts the thread that reads a worker's reports.
    fn hear(&self, worker: usize, reports: impl Read + Send + 'static) {
        let (news, clock) = (self.news.clone(), self.clock);
        std::thread::spawn(move || read_reports(reports, worker, &news, clock));
    }

    /// Says how a worker ended whose reports ended.
    fn ended(&mut self, worker: usize) -> Fault {
        let Some(mut launched) = self.workers[worker].launched.take() else {
            return Fault::Ended("its connection closed".to_owned());
        };
        let status = launched.end(Instant::now() + ENDING);
        Fault::Ended(launched.how(status))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A worker ends with its orders.
        for worker in &mut self.workers {
            worker.orders = None;
        }
        let limit = Instant::now() + ENDING;
        for launched in self.workers.iter_mut().filter_map(|worker| worker.launched.as_mut()) {
            launched.end(limit);
        }
    }
}

fn write_orders(mut to: impl Write, orders: &Receiver<Order>, clock: OurClock) {
    for order in orders {
        let order = match order {
            // Stamped as late as possible: the time in our queue is no part of the round trip.
            Order::Time(_) => Order::Time(clock.now()),
            other => other,
        };
        if frame::write(&mut to, &order).is_err() {
            return;
        }
    }
}

fn read_reports(from: impl Read, worker: usize, news: &Sender<Stamped>, clock: OurClock) {
    let mut from = BufReader::new(from);
    let fault = loop {
        match frame::read::<Report>(&mut from) {
            Ok(Some(report)) => {
                let sent = news.send((worker, clock.now(), News::Report(Box::new(report))));
                if sent.is_err() {
                    return;
                }
            }
            Ok(None) => break None,
            Err(frame::FrameError::Io(_)) => break None,
            Err(error) => break Some(Fault::Protocol(error.to_string())),
        }
    };
    let _ = news.send((worker, clock.now(), News::Ended(fault)));
    // A worker that is still there must not wait for us to read.
    let _ = from.read_to_end(&mut Vec::new());
}
