//! The walk in ascending order.

use super::{Kind, Known, Phase, RangeRead, Step, count_uncached, skip_uncached};
use crate::client::{
    keys::Edge,
    segments::Segments,
    selector::{Selector, resolve},
};
use shaketable_tx::Result;

impl RangeRead {
    pub(super) fn forward(&mut self, known: Known<'_>) -> Result<Step> {
        if self.phase == Phase::Closing {
            self.end = Selector::first_at(self.resolved.take().unwrap_or_default());
            return self.finish();
        }
        if self.phase == Phase::Inverted {
            let end = self.resolved.take().unwrap_or_default();
            if self.begin.key >= end && !self.begin.is_backward() {
                return self.nothing();
            }
            if end.is_empty() {
                return self.empty_with_ends();
            }
        }
        let mut it = resolve(&mut self.begin, known, &self.max, &mut self.reached, &mut self.begin_offset)?;
        let it_end = resolve(&mut self.end, known, &self.max, &mut self.reached, &mut self.end_offset)?;
        match self.phase {
            Phase::Start => {
                if self.is_inverted() {
                    return self.nothing();
                }
                if (self.begin.is_key() && self.begin.key == self.max)
                    || (self.end.is_key() && self.end.key.is_empty())
                {
                    return self.empty_with_ends();
                }
                if !self.end.is_key() && self.begin.key > self.end.key {
                    self.phase = Phase::Inverted;
                    return Ok(Step::Resolve(self.end.clone()));
                }
            }
            Phase::Inverted | Phase::Walk | Phase::Closing => {}
        }
        self.phase = Phase::Walk;
        loop {
            let past_enough = self.rows_beyond_limit >= i64::from(1 - self.end.offset);
            if self.rows.is_empty() && self.is_inverted() {
                return self.nothing();
            }
            if self.end.offset <= 1 && self.end.key.is_empty() {
                return self.empty_with_ends();
            }
            if (self.begin.offset >= self.end.offset && self.begin.key >= self.end.key)
                || (self.begin.offset >= 1 && self.begin.key >= self.max)
            {
                if self.end.is_key() || self.rows.is_empty() {
                    return self.finish();
                }
                self.phase = Phase::Closing;
                return Ok(Step::Resolve(self.end.clone()));
            }
            if it.is_known() && it.begin() > it_end.begin() {
                if self.end.is_key() {
                    return self.finish();
                }
                return self.empty_with_ends();
            }
            if self.limits.is_reached() && past_enough {
                return self.finish();
            }
            let at_end =
                || self.begin.offset > 0 && self.end.is_key() && Edge::at(&self.end.key) == it.begin();
            if it.is(&it_end) && (it.is_known() || at_end()) {
                return self.finish();
            }
            match it.kind()? {
                Kind::Unknown => {
                    if self.limits.may_end() && !self.rows.is_empty() && past_enough {
                        self.more = true;
                        return self.finish();
                    }
                    return self.fetch_forward(&it, &it_end);
                }
                Kind::Row => {
                    self.take(it.row());
                    it.next();
                }
                Kind::Empty => it.next(),
            }
        }
    }

    /// Requests the unknown range at `it` and what follows it, up to the next known segment.
    fn fetch_forward(&mut self, it: &Segments<'_>, it_end: &Segments<'_>) -> Result<Step> {
        let clear_limit = self.clear_limit();
        let mut last = it.clone();
        let mut empty = 0;
        if it.begin() < it_end.begin() {
            empty = skip_uncached(&mut last, it_end, clear_limit + 100, false)?.min(clear_limit);
        }
        let mut read_end = self.end.clone();
        if !last.is(it_end) {
            read_end = Selector::first_at(last.end().to_bytes());
            self.additional += i64::from((1 - self.end.offset).max(0));
        } else if self.end.is_backward() {
            read_end.offset = 1;
            self.additional += i64::from(1 - self.end.offset);
        } else if !self.end.is_key() {
            empty += count_uncached(last, Edge::at(&self.max), clear_limit - empty, false)?;
            read_end.offset += empty as i32;
        }
        self.additional += empty;
        if self.begin.is_key() {
            self.begin.key = it.begin().max(Edge::at(&self.begin.key)).to_bytes();
        }
        let mut read_begin = self.begin.clone();
        if !self.begin.is_backward() {
            read_begin.offset = 1;
            self.additional += i64::from(self.begin.offset - 1);
        } else {
            let empty = count_uncached(it.clone(), Edge::at(b""), clear_limit, true)?;
            read_begin.offset -= empty as i32;
            self.additional += empty;
        }
        read_end.key = read_end.key.max(read_begin.key.clone());
        let offset = 2 - read_begin.offset;
        Ok(self.fetch(read_begin, read_end, offset))
    }
}
