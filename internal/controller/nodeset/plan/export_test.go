package plan

// MaxSnapshotAge exports maxSnapshotAge to tests.
const MaxSnapshotAge = maxSnapshotAge
