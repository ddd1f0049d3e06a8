//! The walk in descending order.

use super::{Kind, Known, Phase, RangeRead, Step, count_uncached, skip_uncached};
use crate::client::{
    keys::Edge,
    segments::Segments,
    selector::{Selector, resolve},
};
use shaketable_tx::Result;

impl RangeRead {
    pub(super) fn backward(&mut self, known: Known<'_>) -> Result<Step> {
        if self.phase == Phase::Closing {
            self.begin = Selector::first_at(self.resolved.take().unwrap_or_default());
            return self.finish();
        }
        if self.phase == Phase::Inverted {
            let begin = self.resolved.take().unwrap_or_default();
            if begin >= self.end.key && self.end.offset <= 1 {
                return self.nothing();
            }
            if begin == self.max {
                return self.empty_with_ends();
            }
        }
        let mut it = resolve(&mut self.end, known, &self.max, &mut self.reached, &mut self.end_offset)?;
        let it_end = resolve(&mut self.begin, known, &self.max, &mut self.reached, &mut self.begin_offset)?;
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
                if !self.begin.is_key() && self.begin.key > self.end.key {
                    self.phase = Phase::Inverted;
                    return Ok(Step::Resolve(self.begin.clone()));
                }
            }
            Phase::Inverted | Phase::Walk | Phase::Closing => {}
        }
        self.phase = Phase::Walk;
        loop {
            let past_enough = self.rows_beyond_limit >= i64::from(self.begin.offset - 1);
            if self.rows.is_empty() && self.is_inverted() {
                return self.nothing();
            }
            if !self.begin.is_backward() && self.begin.key >= self.max {
                return self.empty_with_ends();
            }
            if (self.begin.offset >= self.end.offset && self.begin.key >= self.end.key)
                || (self.end.offset <= 1 && self.end.key.is_empty())
            {
                if self.begin.is_key() || self.rows.is_empty() {
                    return self.finish();
                }
                self.phase = Phase::Closing;
                return Ok(Step::Resolve(self.begin.clone()));
            }
            if past_enough && it.is_known() && it.begin() < it_end.begin() {
                if self.begin.is_key() {
                    return self.finish();
                }
                return self.empty_with_ends();
            }
            if self.limits.is_reached() && past_enough {
                return self.finish();
            }
            if self.end.is_key() && Edge::at(&self.end.key) == it.begin() {
                if past_enough && it.is(&it_end) {
                    return self.finish();
                }
                it.prev();
            }
            match it.kind()? {
                Kind::Unknown => {
                    if self.limits.bytes.is_some() && !self.rows.is_empty() && past_enough {
                        self.more = true;
                        return self.finish();
                    }
                    return self.fetch_backward(&it, &it_end);
                }
                Kind::Row => self.take(it.row()),
                Kind::Empty => {}
            }
            if it.is(&it_end) {
                return self.finish();
            }
            it.prev();
        }
    }

    /// Requests the unknown range at `it` and what precedes it, down to the next known segment.
    fn fetch_backward(&mut self, it: &Segments<'_>, it_end: &Segments<'_>) -> Result<Step> {
        let clear_limit = self.clear_limit();
        let mut last = it.clone();
        let mut empty = 0;
        if it.begin() > it_end.begin() {
            empty = skip_uncached(&mut last, it_end, clear_limit + 100, true)?.min(clear_limit);
        }
        let mut read_begin = self.begin.clone();
        if !last.is(it_end) {
            read_begin = Selector::first_at(last.begin().to_bytes());
            self.additional += i64::from((self.begin.offset - 1).max(0));
        } else if !self.begin.is_backward() {
            read_begin.offset = 1;
            self.additional += i64::from(self.begin.offset - 1);
        } else {
            empty += count_uncached(last, Edge::at(b""), clear_limit - empty, true)?;
            read_begin.offset -= empty as i32;
        }
        self.additional += empty;
        if self.end.is_key() {
            self.end.key = it.end().min(Edge::at(&self.end.key)).to_bytes();
        }
        let mut read_end = self.end.clone();
        if self.end.is_backward() {
            read_end.offset = 1;
            self.additional += i64::from(1 - self.end.offset);
        } else if !self.end.is_key() {
            let empty = count_uncached(it.clone(), Edge::at(&self.max), clear_limit, false)?;
            read_end.offset += empty as i32;
            self.additional += empty;
        }
        read_begin.key = read_begin.key.min(read_end.key.clone());
        let offset = read_end.offset;
        Ok(self.fetch(read_begin, read_end, offset))
    }
}
