//! Slots that are used again, so that who names a tenant that is gone does not meet the next one.

/// A place whose tenants come and go, each under a generation of its own.
#[derive(Debug)]
pub(super) struct Place<T> {
    pub(super) generation: u32,
    pub(super) tenant: Option<T>,
}

impl<T> Place<T> {
    pub(super) fn get(&self, generation: u32) -> Option<&T> {
        self.tenant.as_ref().filter(|_| self.generation == generation)
    }

    pub(super) fn get_mut(&mut self, generation: u32) -> Option<&mut T> {
        self.tenant.as_mut().filter(|_| self.generation == generation)
    }
}
