//! What one link's sessions are owed, and which of them spoke last.

/// One accepted connection. Its slot is used again after it, under another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SessionId {
    /// Its place among the link's sessions.
    pub slot: u32,
    /// How many sessions held the slot before it.
    pub generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    generation: u32,
    /// When it last spoke, counted in messages of the link.
    spoke: u64,
    /// Answers that it still waits for.
    owed: u32,
    /// It may be given messages of the host's own.
    listening: bool,
}

/// The sessions of one link.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    slots: Vec<Option<Session>>,
    messages: u64,
}

impl Sessions {
    pub(super) fn open(&mut self, id: SessionId) {
        let slot = id.slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, None);
        }
        self.messages += 1;
        let spoke = self.messages;
        if let Some(free) = self.slots.get_mut(slot) {
            *free = Some(Session { generation: id.generation, spoke, owed: 0, listening: true });
        }
    }

    pub(super) fn close(&mut self, id: SessionId) {
        if self.get_mut(id).is_some()
            && let Some(slot) = self.slots.get_mut(id.slot as usize)
        {
            *slot = None;
        }
    }

    /// The session will send nothing more; it is only owed what is in flight.
    pub(super) fn stop_listening(&mut self, id: SessionId) {
        if let Some(session) = self.get_mut(id) {
            session.listening = false;
        }
    }

    pub(super) fn spoke(&mut self, id: SessionId) {
        self.messages += 1;
        let spoke = self.messages;
        if let Some(session) = self.get_mut(id) {
            session.spoke = spoke;
        }
    }

    pub(super) fn owe(&mut self, id: SessionId) {
        if let Some(session) = self.get_mut(id) {
            session.owed += 1;
        }
    }

    pub(super) fn settle(&mut self, id: SessionId) {
        if let Some(session) = self.get_mut(id) {
            session.owed = session.owed.saturating_sub(1);
        }
    }

    pub(super) fn owed(&self, id: SessionId) -> u32 {
        self.slots
            .get(id.slot as usize)
            .and_then(Option::as_ref)
            .filter(|session| session.generation == id.generation)
            .map_or(0, |session| session.owed)
    }

    /// The listening session that spoke last.
    pub(super) fn most_recent(&self) -> Option<SessionId> {
        let listening = self.slots.iter().zip(0..).filter_map(|(session, slot)| {
            let session = session.as_ref().filter(|session| session.listening)?;
            Some((session.spoke, SessionId { slot, generation: session.generation }))
        });
        listening.max_by_key(|(spoke, _)| *spoke).map(|(_, id)| id)
    }

    fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        let session = self.slots.get_mut(id.slot as usize)?.as_mut()?;
        (session.generation == id.generation).then_some(session)
    }
}
