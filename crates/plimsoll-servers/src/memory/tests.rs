use super::*;

fn content(data: &Data) -> Vec<u8> {
    let mut all = Vec::new();
    data.read(0, u32::MAX, &mut all);
    all
}

#[test]
fn any_mixture_of_writes_and_cuts_reads_like_a_vector() {
    let budget = Budget::new(1 << 30);
    let (mut data, mut model) = (Data::default(), Vec::<u8>::new());
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for round in 0..500 {
        let (at, count) = (next(300_000), next(100_000) as usize);
        if next(4) == 0 {
            data.resize(at, &budget).unwrap();
            model.resize(at as usize, 0);
        } else {
            let bytes: Vec<u8> = (0..count).map(|i| (i + round) as u8).collect();
            data.write(at, &bytes, &budget).unwrap();
            let end = at as usize + count;
            if count > 0 && model.len() < end {
                model.resize(end, 0);
            }
            if count > 0 {
                model[at as usize..end].copy_from_slice(&bytes);
            }
        }
        assert!(content(&data) == model, "round {round}");
        assert_eq!(budget.max() - budget.free(), data.charged());
    }
    data.resize(0, &budget).unwrap();
    assert_eq!(budget.free(), budget.max());
}

#[test]
fn a_byte_far_out_costs_little_and_a_byte_too_far_is_refused() {
    let budget = Budget::new(4096);
    let mut data = Data::default();
    data.write(1 << 50, b"x", &budget).unwrap();
    assert_eq!(data.size(), (1 << 50) + 1);
    assert_eq!(data.write(FILE_BYTES_MAX, b"x", &budget), Err(Full::TooBig));
    assert_eq!(data.write(u64::MAX, b"x", &budget), Err(Full::TooBig));
    let mut read = Vec::new();
    data.read((1 << 50) - 3, 8, &mut read);
    assert_eq!(read, b"\0\0\0x");
}

#[test]
fn a_write_that_does_not_fit_leaves_everything_as_it_was() {
    let budget = Budget::new(70_000);
    let mut data = Data::default();
    data.write(0, b"kept", &budget).unwrap();
    let free = budget.free();
    assert_eq!(data.write(2, &vec![1; 100_000], &budget), Err(Full::NoSpace));
    assert_eq!((content(&data), budget.free()), (b"kept".to_vec(), free));
}
