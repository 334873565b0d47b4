use super::*;
use crate::bundle::IntervalLog;
use crate::outcome::OpNames;

const KIB: usize = 1_024;
const MIB: usize = 1_024 * KIB;

/// `per_second` ops over `kinds` op kinds, a third of them of the first kind, a third of the
/// rest of the second …: times of some 200 µs that scatter as those of a server do.
fn slice(kinds: usize, per_second: u32, times: &[TimeKind]) -> IntervalSlice {
    let mut ops: Vec<OpTimes> = (0..kinds).map(|_| OpTimes::new()).collect();
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    for _ in 0..per_second {
        let mut op = 0;
        while op + 1 < kinds && draw() > 1.0 / 3.0 {
            op += 1;
        }
        for kind in times {
            let scatter = (draw() + draw() + draw() + draw() - 2.0) * 1.2;
            let ns = (200_000.0 * scatter.exp()) as u64;
            kind.of_mut(&mut ops[op]).record(ns).unwrap();
        }
    }
    IntervalSlice {
        second: 3,
        start: Nanos::from_secs(3),
        length: Nanos::from_secs(1),
        phase: Phase::Measure,
        ops,
    }
}

fn written(slice: &IntervalSlice) -> Vec<u8> {
    let names = OpNames((0..slice.ops.len()).map(|op| format!("op{op}")).collect());
    let mut log = IntervalLog::begin(Vec::new(), &names).unwrap();
    log.write(slice).unwrap();
    log.finish().unwrap()
}

#[test]
fn a_packed_slice_writes_the_same_log_to_the_byte() {
    let all: Vec<TimeKind> = TimeKind::all().collect();
    let slice = slice(5, 3_000, &all);
    let packed = SlicePacker::default().pack(&slice).unwrap();
    assert_eq!(packed.parts.len(), 5 * TimeKind::all().count());
    assert_eq!(written(&packed.unpack().unwrap()), written(&slice));
    let nothing = IntervalSlice { ops: vec![OpTimes::new(); 2], ..slice };
    let packed = SlicePacker::default().pack(&nothing).unwrap();
    assert!(packed.parts.is_empty() && packed.memory_bytes() < KIB);
    assert_eq!(packed.unpack().unwrap().ops.len(), 2);
}

#[test]
fn ten_minutes_of_twenty_ops_fit_into_a_hundred_mebibytes() {
    let mut packer = SlicePacker::default();
    // Of ops without streams.
    let times: Vec<TimeKind> =
        TimeKind::all().take_while(|kind| *kind != TimeKind::FirstByte).collect();
    for (per_second, at_most) in [(2_000, 50 * MIB), (10_000, 100 * MIB)] {
        let second = packer.pack(&slice(20, per_second, &times)).unwrap().memory_bytes();
        let minutes = 600 * second;
        assert!(minutes < at_most, "{per_second}/s: {} MiB", minutes / MIB);
    }
}
