//! The story with SCTP, in a kernel that speaks it.

use super::World;
use super::carrier::Carrier;

#[test]
#[ignore = "kernel: uml"]
fn an_sctp_association_of_two_clusters_is_made_again_at_once() {
    let world = World::new("the packets of two clusters, with SCTP");
    world
        .expect("the kernel has what it takes")
        .tell(Carrier::Sctp);
}
