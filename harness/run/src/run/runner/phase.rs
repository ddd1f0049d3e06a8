//! The phases of a run as functions that are never inlined: `scripts/profile` knows by their names what a run
//! spends its time in. What is below none of them, and below the executor, is the simulation.
//!
//! Parts of some phases are done by tasks of the simulation. Each of their polls is in a function of the
//! phase; what the cluster does for them is not.

use futures::future::LocalBoxFuture;
use std::{
    future::{Future, poll_fn},
    hint::black_box,
    task::{Context, Poll},
};

/// Defines a phase: a function that does a part of it, and one for a task's part.
macro_rules! phase {
    ($(#[$about:meta])* $name:ident, $task:ident, $poll:ident) => {
        $(#[$about])*
        #[inline(never)]
        pub(super) fn $name<T>(part: impl FnOnce() -> T) -> T {
            let done = part();
            // A call at the end would be a jump: this function would not be on the stack.
            black_box(());
            done
        }

        $(#[$about])*
        pub(super) fn $task<'a, T>(mut part: LocalBoxFuture<'a, T>) -> impl Future<Output = T> + 'a
        where
            T: 'a,
        {
            poll_fn(move |context| $poll(&mut part, context))
        }

        #[inline(never)]
        fn $poll<T>(part: &mut LocalBoxFuture<'_, T>, context: &mut Context<'_>) -> Poll<T> {
            let polled = part.as_mut().poll(context);
            black_box(());
            polled
        }
    };
}

phase!(
    /// Before clients work: the cluster's machines, and the workload's initial data.
    set_up, set_up_task, set_up_poll
);
phase!(
    /// Judges, audits and the final check, and what they read: what the history is summed up to.
    judge, judge_task, judge_poll
);
phase!(
    /// After the last judge.
    tear_down, tear_down_task, tear_down_poll
);
