package plan

// Patience is known to tests.
const Patience = patience
