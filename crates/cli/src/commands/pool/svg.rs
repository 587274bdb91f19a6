//! A map as SVG: one file without anything from elsewhere, a tooltip per cell, and a sign in each so that nothing
//! depends on colour.

use std::fmt::Write as _;

use mooring_ipam::{Cell, Map};

use super::draw::{Look, cell_size, legend};

const CELL: usize = 14;
const LEFT: usize = 270;
const TOP: usize = 44;

fn fill(look: Look) -> &'static str {
    match look {
        Look::Aside => "#d9d9d9",
        Look::Gateway => "#6a51a3",
        Look::Free => "#edf8e9",
        Look::Tenths(0..=3) => "#fee6ce",
        Look::Tenths(4..=6) => "#fdae6b",
        Look::Tenths(_) => "#f16913",
        Look::Full => "#a63603",
        Look::Reserved => "#4292c6",
        Look::Cooling => "#9ecae1",
    }
}

/// Dark cells have light signs.
fn ink(look: Look) -> &'static str {
    match look {
        Look::Full | Look::Gateway | Look::Reserved => "#ffffff",
        _ => "#333333",
    }
}

pub(super) fn svg(title: &str, map: &Map) -> String {
    let columns = map
        .rows
        .iter()
        .map(|r| r.cells.len())
        .max()
        .unwrap_or(0)
        .max(24);
    let (width, height) = (LEFT + columns * CELL + 16, TOP + map.rows.len() * CELL + 48);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"monospace\" font-size=\"11\">\n<title>{}</title>\n",
        escaped(title)
    );
    let _ = writeln!(
        text,
        "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
    );
    let _ = writeln!(
        text,
        "<text x=\"16\" y=\"24\" font-size=\"14\">{}: a cell is {}</text>",
        escaped(title),
        cell_size(map)
    );
    for (nth, row) in map.rows.iter().enumerate() {
        let y = TOP + nth * CELL;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 8,
            y + CELL - 3,
            row.first
        );
        for (column, cell) in row.cells.iter().enumerate() {
            let look = Look::of(cell, map);
            square(
                &mut text,
                (LEFT + column * CELL, y),
                look,
                &told(cell, look),
            );
        }
    }
    let y = TOP + map.rows.len() * CELL + 16;
    let mut x = 16;
    for (look, word) in legend(map) {
        square(&mut text, (x, y), *look, word);
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\">{word}</text>",
            x + CELL + 4,
            y + CELL - 3
        );
        x += CELL + 20 + word.len() * 7;
    }
    text + "</svg>\n"
}

fn square(text: &mut String, (x, y): (usize, usize), look: Look, told: &str) {
    let (side, fill, ink) = (CELL - 1, fill(look), ink(look));
    let _ = writeln!(
        text,
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{fill}\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"9\" fill=\"{ink}\">{}</text></g>",
        escaped(told),
        x + side / 2,
        y + side - 4,
        look.sign()
    );
}

/// What the tooltip says.
fn told(cell: &Cell, look: Look) -> String {
    let what = match look {
        Look::Aside => "not handed out".to_owned(),
        Look::Gateway => "the gateway".to_owned(),
        Look::Free => "free".to_owned(),
        _ if cell.size() == 1 => match look {
            Look::Reserved => "reserved".to_owned(),
            Look::Cooling => "resting".to_owned(),
            _ => "held".to_owned(),
        },
        _ => format!(
            "{} held, {} reserved, {} resting, {} free",
            cell.held,
            cell.reserved,
            cell.cooling,
            cell.free()
        ),
    };
    let who = cell.who.iter().map(|who| format!("\n{who}"));
    format!("{}: {what}{}", cell.range, who.collect::<String>())
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // What XML has no way to write.
            c if c.is_control() && c != '\n' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
