//! The only module that uses madsim's runtime: virtual time, timers, tasks and machines.

use crate::seed::Seed;
use futures::{
    FutureExt,
    future::{AbortHandle, abortable},
};
use madsim::{
    plugin,
    runtime::{Handle, Runtime},
    task::NodeId as MadsimNode,
    time::{Instant, Sleep, TimeHandle},
};
use parking_lot::Mutex;
use std::{
    any::Any,
    cell::RefCell,
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

/// Virtual time since the start of the run, in nanoseconds.
pub type Nanos = u64;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// A task. Boxed, because the runtime's own code is compiled again for each type of task: for every workload.
type Main<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs `main` to its end in its own simulated runtime. Everything runs on this thread, in an order
/// determined by the seed.
pub fn simulate<F: Future>(seed: Seed, main: F) -> F::Output {
    #[inline(never)]
    fn block_on(seed: Seed, main: Main<'_>) {
        let runtime = set_up(seed);
        runtime.block_on(main);
        tear_down(runtime);
    }
    let mut output = None;
    // A run that panicked has left its values behind.
    LOCALS.take();
    block_on(seed, Box::pin(async { output = Some(main.await) }));
    LOCALS.take();
    // The runtime panics if it cannot run its main task to its end.
    output.expect("the main task has ended")
}

/// A runtime without machines. This function and its like are never inlined: profiles know the phases of a
/// run by them (`scripts/profile`).
#[inline(never)]
fn set_up(seed: Seed) -> Runtime {
    Runtime::with_seed_and_config(seed.0, madsim::Config::default())
}

/// Drops a runtime, and with it what its tasks hold.
#[inline(never)]
fn tear_down(runtime: Runtime) {
    drop(runtime);
    // Without something after it, the drop would be a jump out of this function.
    std::hint::black_box(());
}

thread_local! {
    /// One value of each machine of this thread's run.
    static LOCALS: RefCell<BTreeMap<MadsimNode, Weak<dyn Any + Send + Sync>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether this thread runs a simulation.
pub fn is_simulating() -> bool {
    Handle::try_current().is_ok()
}

/// Virtual time since the start of this thread's run. Unlike [`Clock::now`], it is not counted as a reading
/// of the clock.
pub(crate) fn elapsed() -> Nanos {
    TimeHandle::current().elapsed().as_nanos() as Nanos
}

/// Changes the order in which the runtime polls what is ready at one instant, from now on.
#[expect(
    clippy::disallowed_methods,
    reason = "it moves the runtime's own sequence, and uses no number of it"
)]
pub(crate) fn reorder(seed: Seed) {
    // The runtime has one sequence of numbers: it continues at another place.
    for _ in 0..=seed.0 % 64 {
        let _: u64 = madsim::rand::random();
    }
}

/// Keeps a value for the machine whose task is being polled, in place of the one before, as long as its owner
/// does. Outside of a simulation there is no machine, and nothing is kept.
pub(crate) fn set_machine_local(value: Weak<dyn Any + Send + Sync>) {
    if is_simulating() {
        LOCALS.with_borrow_mut(|locals| locals.insert(plugin::node(), value));
    }
}

/// The value that is kept for the machine whose task is being polled.
pub(crate) fn machine_local() -> Option<Arc<dyn Any + Send + Sync>> {
    is_simulating()
        .then(|| LOCALS.with_borrow(|locals| locals.get(&plugin::node()).and_then(Weak::upgrade)))
        .flatten()
}

/// The number of clock reads at one instant of virtual time that indicates a loop without waiting. Every call
/// of a transaction reads the clock; a workload may make a quarter of a million of them before it waits for
/// anything. What comes from outside of the simulation has no such limit: see [`Clock::asked`].
const MAX_READS_PER_INSTANT: u32 = 1_000_000;

/// A handle to the virtual clock.
#[derive(Clone)]
pub struct Clock {
    time: TimeHandle,
    /// What the runtime's instants count from.
    origin: Instant,
    /// With it all timers are armed: the runtime keeps the waker and the deadline, not the future.
    timer: Arc<Mutex<Sleep>>,
    /// The time of the last read, and the number of reads since time has advanced.
    clock_reads: Arc<ClockReads>,
}

/// Written by one thread only; atomic because handles are sent between machines.
#[derive(Default)]
struct ClockReads {
    time: AtomicU64,
    reads: AtomicU32,
}

impl Clock {
    /// The clock of the current run.
    pub fn current() -> Clock {
        let time = TimeHandle::current();
        let timer = Arc::new(Mutex::new(time.sleep(Duration::ZERO)));
        Clock { origin: time.now_instant() - time.elapsed(), timer, time, clock_reads: Arc::default() }
    }

    /// Virtual time since the start of the run. Panics if it is read endlessly while time does not advance:
    /// the runtime cannot interrupt a task, so that no other task would ever run again.
    pub fn now(&self) -> Nanos {
        let now = self.time.elapsed().as_nanos() as Nanos;
        let reads = match self.clock_reads.time.load(Ordering::Relaxed) == now {
            true => self.clock_reads.reads.load(Ordering::Relaxed) + 1,
            false => 0,
        };
        self.clock_reads.time.store(now, Ordering::Relaxed);
        // A task that continues after the panic starts counting again.
        self.clock_reads.reads.store(reads % MAX_READS_PER_INSTANT, Ordering::Relaxed);
        assert!(
            reads < MAX_READS_PER_INSTANT,
            "it loops without waiting: {MAX_READS_PER_INSTANT} calls at one instant of virtual time"
        );
        now
    }

    /// [`now`](Clock::now) for what must not panic, such as a destructor: the reading does not count.
    pub fn elapsed(&self) -> Nanos {
        self.time.elapsed().as_nanos() as Nanos
    }

    /// Something outside of the simulation has asked for something: what it asks for is no loop, however much
    /// it is at one instant.
    pub fn asked(&self) {
        self.clock_reads.reads.store(0, Ordering::Relaxed);
    }

    /// Completes after `duration`, to the nanosecond.
    pub fn sleep(&self, duration: Nanos) -> Sleep {
        let mut sleep = self.time.sleep(Duration::ZERO);
        // madsim rounds sleeps up to a millisecond, as tokio does; a reset deadline is exact.
        let deadline = self.time.now_instant() + Duration::from_nanos(duration);
        Pin::new(&mut sleep).reset(deadline);
        sleep
    }

    /// Completes at the virtual time `at`, immediately if it has passed.
    pub fn sleep_until(&self, at: Nanos) -> Sleep {
        self.sleep(at.saturating_sub(self.now()))
    }

    /// The future's output, or `None` if it takes longer than `duration`. The future is polled first.
    pub async fn timeout<F: Future>(&self, duration: Nanos, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut sleep = self.sleep(duration);
        let mut armed = false;
        std::future::poll_fn(move |cx| {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(value));
            }
            // A madsim sleep adds a timer at every poll: poll it once, then only read the clock.
            if !armed {
                armed = true;
                return Pin::new(&mut sleep).poll(cx).map(|()| None);
            }
            if sleep.is_elapsed() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// Polls a raw deadline timer once, for a future that manages its own timer.
    pub(crate) fn arm(&self, at: Nanos, cx: &mut Context<'_>) -> bool {
        let mut timer = self.timer.lock();
        let mut timer = Pin::new(&mut *timer);
        timer.as_mut().reset(self.origin + Duration::from_nanos(at));
        timer.poll(cx).is_ready()
    }
}

/// A deadline within a hand-written poll function. It arms a timer only if no armed timer fires as early: a
/// timer cannot be removed, and each costs a wake-up.
#[derive(Debug, Default)]
pub struct Alarm {
    armed: Option<Nanos>,
}

impl Alarm {
    /// Whether virtual time has reached `at`; if not, the task is woken at that time.
    pub fn poll(&mut self, clock: &Clock, at: Nanos, cx: &mut Context<'_>) -> bool {
        let now = clock.now();
        if now >= at {
            return true;
        }
        if self.armed.is_none_or(|armed| armed <= now || armed > at) {
            self.armed = Some(at);
            return clock.arm(at, cx);
        }
        false
    }
}

/// A simulated machine in the runtime.
#[derive(Clone)]
pub struct Machine {
    handle: Handle,
    id: MadsimNode,
}

impl Machine {
    /// Builds a machine that runs `main`, which starts again after each restart.
    pub fn start<F>(name: &str, main: impl Fn() -> F + Send + Sync + 'static) -> Machine
    where
        F: Future + 'static,
    {
        Self::start_boxed(
            name,
            Box::new(move || {
                let main = main();
                Box::pin(async move {
                    main.await;
                    // A machine whose main has ended stays up, idle, until it is restarted.
                    std::future::pending::<()>().await
                })
            }),
        )
    }

    fn start_boxed(name: &str, main: Box<dyn Fn() -> Main<'static> + Send + Sync>) -> Machine {
        let handle = Handle::current();
        let node = handle.create_node().name(name).init(main).build();
        Machine { id: node.id(), handle }
    }

    /// Drops every task of the machine in its current state.
    pub fn kill(&self) {
        self.handle.kill(self.id);
    }

    /// Kills the machine and runs its main again.
    pub fn restart(&self) {
        self.handle.restart(self.id);
    }

    /// Stops polling the machine's tasks.
    pub fn pause(&self) {
        self.handle.pause(self.id);
    }

    /// Continues polling the machine's tasks.
    pub fn resume(&self) {
        self.handle.resume(self.id);
    }
}

/// Is ready when it is polled again.
pub fn yield_now() -> impl Future<Output = ()> + Send {
    let mut yielded = false;
    poll_fn(move |cx| match std::mem::replace(&mut yielded, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
}

/// Spawns a task on the calling machine (on the supervisor, outside of any machine).
pub fn spawn<F>(future: F)
where
    F: Future<Output = ()> + 'static,
{
    fn spawn_boxed(future: Main<'static>) {
        drop(madsim::task::spawn_local(future));
    }
    spawn_boxed(Box::pin(future));
}

/// A task that ends when this handle is dropped.
pub struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Forgets the tasks that have ended. The runtime keeps a few bytes of each until its tasks are counted.
pub fn forget_ended_tasks() {
    Handle::current().metrics().num_tasks();
}

/// Spawns a task like [`spawn`], which ends at the latest when the returned handle is dropped.
#[must_use = "dropping the task ends it"]
pub fn spawn_task<F>(future: F) -> Task
where
    F: Future<Output = ()> + 'static,
{
    let (future, handle) = abortable(future);
    spawn(future.map(|_| ()));
    Task(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_exact_below_a_millisecond() {
        simulate(Seed(1), async {
            let clock = Clock::current();
            let before = clock.now();
            clock.sleep(20_000).await;
            let slept = clock.now() - before;
            assert!((20_000..25_000).contains(&slept), "{slept}");
        });
    }

    #[test]
    fn a_loop_without_waiting_panics() {
        let spin = || {
            simulate(Seed(1), async {
                let clock = Clock::current();
                while clock.now() < SECOND {}
            });
        };
        let panic = std::panic::catch_unwind(spin).expect_err("time stands still in a loop");
        assert!(panic.downcast_ref::<String>().is_some_and(|said| said.contains("loops without waiting")));
    }

    #[test]
    fn timeout_returns_the_result_or_none() {
        simulate(Seed(1), async {
            let clock = Clock::current();
            assert_eq!(clock.timeout(1_000_000, clock.sleep(1_000)).await, Some(()));
            assert_eq!(clock.timeout(1_000, clock.sleep(1_000_000)).await, None);
        });
    }
}
