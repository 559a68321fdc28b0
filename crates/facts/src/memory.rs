//! Memory: pages, huge and transparent, swap and NUMA nodes.

use pgdyno_exec::setting::in_brackets;
use pgdyno_model::facts::MemoryFacts;
use pgdyno_model::units::Bytes;

use super::text::{kilobytes, value_of};
use super::tree::Tree;

const THP: &str = "sys/kernel/mm/transparent_hugepage";
const NODES: &str = "sys/devices/system/node";

pub(super) fn read(tree: &Tree, meminfo: &str) -> MemoryFacts {
    let thp = |file: &str| tree.read(format!("{THP}/{file}")).map(|t| in_brackets(&t));
    let mut nodes: Vec<u32> =
        tree.names(NODES).iter().filter_map(|n| n.strip_prefix("node")?.parse().ok()).collect();
    nodes.sort_unstable();
    let node = |n: u32| {
        // Lines begin with `Node 0 `.
        let text = tree.read(format!("{NODES}/node{n}/meminfo"))?;
        let prefix = format!("Node {n} ");
        let own: String = text
            .lines()
            .filter_map(|l| l.trim().strip_prefix(&prefix))
            .flat_map(|l| [l, "\n"])
            .collect();
        kilobytes(&own, "MemTotal").map(Bytes)
    };
    MemoryFacts {
        transparent_hugepage: thp("enabled"),
        transparent_hugepage_defrag: thp("defrag"),
        huge_pages: value_of(meminfo, "HugePages_Total").and_then(|v| v.parse().ok()),
        huge_page_size: kilobytes(meminfo, "Hugepagesize").map(Bytes),
        swap: kilobytes(meminfo, "SwapTotal").map(Bytes),
        numa_nodes: nodes.into_iter().filter_map(node).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::MadeTree;
    use super::*;

    #[test]
    fn nodes_come_in_their_order_and_pages_in_bytes() {
        let made = MadeTree::new();
        made.files(&[
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("sys/devices/system/node/node10/meminfo", "Node 10 MemTotal:       30 kB\n"),
            (
                "sys/devices/system/node/node1/meminfo",
                "Node 1 MemTotal:       20 kB\nNode 1 MemFree: 1 kB\n",
            ),
            ("sys/devices/system/node/online", "0-1\n"),
        ]);
        let memory = read(
            &made.tree(),
            "SwapTotal: 8 kB\nHugePages_Total:      12\nHugepagesize:       2048 kB\n",
        );
        assert_eq!(memory.transparent_hugepage.as_deref(), Some("always"));
        assert_eq!(memory.transparent_hugepage_defrag, None);
        assert_eq!(memory.numa_nodes, [Bytes(20 << 10), Bytes(30 << 10)]);
        assert_eq!((memory.huge_pages, memory.huge_page_size), (Some(12), Some(Bytes(2 << 20))));
        assert_eq!(memory.swap, Some(Bytes(8 << 10)));
    }
}
