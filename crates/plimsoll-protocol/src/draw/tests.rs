use super::*;

fn owners(clients: u32) -> impl Iterator<Item = Owner> {
    (0..clients).map(move |client| Owner { seed: 7, client, clients })
}

#[test]
fn all_clients_together_hold_the_weights_in_a_short_run() {
    let weights = Weights::new(&[27.0, 12.08, 6.04, 11.0, 1.0, 1.0, 0.3]);
    for clients in [1, 3, 16, 50] {
        let mut counts = vec![0u32; weights.count()];
        let each = 2_700 / clients;
        for owner in owners(clients) {
            let mut deck = OwnDeck::new(Stream(0));
            (0..each).for_each(|_| counts[deck.draw(owner, &weights)] += 1);
        }
        for (count, weight) in counts.iter().zip([27.0, 12.08, 6.04, 11.0, 1.0, 1.0, 0.3]) {
            let share = f64::from(*count) / f64::from(each * clients);
            assert!((share - weight / 58.42).abs() < 0.004, "{clients}: {counts:?}");
        }
    }
}

#[test]
fn a_common_deck_gives_each_client_every_card_once_and_all_of_them_the_rare_ones_soon() {
    let percents = [85, 8, 4, 2, 1];
    let mut rare = 0;
    for owner in owners(16) {
        let mut deck = CommonDeck::new(Stream(1));
        let mut counts = [0u8; 5];
        for i in 0..CARDS {
            let card = deck.draw(owner, &percents);
            counts[card] += 1;
            rare += u32::from(card == 4 && i < 25);
        }
        assert_eq!(counts, percents);
    }
    assert_eq!(rare, 4);
}

#[test]
fn strata_fill_the_unit_evenly() {
    for clients in [1, 4, 16] {
        let mut bins = [0u32; 50];
        for owner in owners(clients) {
            let mut strata = Strata::new(Stream(4));
            for _ in 0..5_000 / clients {
                bins[(strata.draw(owner).quantile * 50.0) as usize] += 1;
            }
        }
        assert!(bins.iter().all(|n| (90..=110).contains(n)), "{clients}: {bins:?}");
    }
}

#[test]
fn weights_say_how_far_into_a_share_a_quantile_lies() {
    let weights = Weights::new(&[1.0, 0.0, 3.0]);
    assert_eq!((weights.index_at(0.0), weights.index_at(0.25), weights.index_at(0.999)), (0, 2, 2));
    assert_eq!(weights.within(0.125), (0, 0.5));
    assert_eq!(weights.within(0.625), (2, 0.5));
    assert!(weights.within(1.0).1 < 1.0);
}

#[test]
fn clients_share_a_sequence_however_many_they_are() {
    let draws = |seed, clients: u32| {
        let of_client = |client| {
            let mut strata = Strata::new(Stream(0x102));
            let owner = Owner { seed, client, clients };
            (0..240 / clients).map(|_| strata.draw(owner)).collect::<Vec<_>>()
        };
        let mut all: Vec<Sample> = (0..clients).flat_map(of_client).collect();
        all.sort_by_key(|sample| sample.bits);
        all
    };
    assert_eq!(draws(1, 1), draws(1, 4));
    assert_eq!(draws(1, 1), draws(1, 16));
    assert_ne!(draws(1, 1), draws(2, 1));
}
