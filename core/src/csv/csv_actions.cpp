// SPDX-License-Identifier: Apache-2.0
// Reads the cells of a schedule's CSV file.
#include "csv/csv_actions.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "base/printable.hpp"
#include "triax/text.hpp"

namespace triax::csv {

namespace {

constexpr std::size_t kKept = 20;    // the program that wrote the file often makes the same mistake in every cell
constexpr int kMaxNumber = 16777215; // of stages and microbatches, numbered from 0
constexpr int kMaxLines = 1 << 16, kMaxActions = 1 << 21; // more than the largest step has
constexpr std::size_t kMaxCell = 32;                      // characters of a cell that a message shows
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf", kBlanks = " \t\r";

const char* const kForm =
    "an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || c == '_';
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

/// Removes the quotes that spreadsheets put around a cell; actions contain no quotes.
std::string_view without_quotes(std::string_view text) {
  text = trimmed(text);
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? trimmed(text.substr(1, text.size() - 2))
                                                                       : text;
}

/// Removes and returns the characters at the front of the text for which `belongs` is true.
template <class Belongs>
std::string_view take(std::string_view& text, Belongs belongs) {
  const auto end = std::ranges::find_if_not(text, belongs);
  const std::string_view taken = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(taken.size());
  return taken;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

class CellReader {
 public:
  CellReader(const Cell& cell, Problems& problems) : cell_(cell), rest_(cell.text), problems_(problems) {}

  std::optional<CellAction> read() {
    CellAction out{cell_, {}};
    number("stage", out.stage);
    out.kind = take(rest_, is_letter);
    number("microbatch", out.microbatch);
    if (take(rest_, '.') && !number("slice", out.slice)) rest_ = cell_.text;
    if (take(rest_, '\'')) out.replica = 1;
    if (too_large_) return std::nullopt;
    if (!out.kind.empty() && rest_.empty()) return out;
    if (cell_.text.ends_with("OVERLAP_F_B")) {
      problems_.add(cell_, "runs two passes at once, which this version does not support",
                    "write two separate cells, one after the other");
    } else {
      problems_.add(cell_, "is not an action", kForm);
    }
    return std::nullopt;
  }

 private:
  /// Leaves `value` unchanged if there is no number. False: there is none.
  bool number(const char* what, int& value) {
    const std::string_view digits = take(rest_, is_digit);
    if (digits.empty()) return false;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && value <= kMaxNumber) return true;
    if (!too_large_)
      problems_.add(cell_, text("has a {} above {}, the maximum", what, kMaxNumber), "number them from 0 without gaps");
    too_large_ = true;
    return true;
  }

  Cell cell_;
  std::string_view rest_;
  Problems& problems_;
  bool too_large_ = false;
};

/// Reports the first byte that cannot occur in a text file.
bool is_text(std::string_view bytes, Problems& problems) {
  int line = 1;
  for (const char c : bytes) {
    line += c == '\n';
    if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    char byte[8];
    std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    problems.add(line, text("contains the byte {}, which is not text", byte),
                 "name a CSV file: a line per pipeline rank, an action per cell");
    return false;
  }
  return true;
}

} // namespace

void Problems::add(const Cell& cell, std::string_view message, std::string_view hint) {
  const std::string shown = printable(cell.text.substr(0, kMaxCell)) + (cell.text.size() > kMaxCell ? "..." : "");
  keep(text("{}:{}:{}", file_, cell.at.line, cell.at.cell), text("\"{}\" {}", shown, message), hint);
}

void Problems::keep(const std::string& where, std::string_view message, std::string_view hint) {
  if (++count_ > kKept) return;
  texts_.push_back(text("{}: {}", where, message));
  if (!hint.empty() && hint != last_hint_) texts_.back().append("\n  ").append(hint);
  last_hint_ = hint;
}

Rows read_actions(std::string_view csv, Problems& problems, const Check& check) {
  Rows out;
  if (csv.starts_with(kByteOrderMark)) csv.remove_prefix(kByteOrderMark.size());
  if (!is_text(csv, problems)) return out;
  int actions = 0;
  for (Location at{1, 0}; !csv.empty() && at.line <= kMaxLines && actions <= kMaxActions; ++at.line) {
    std::string_view line = csv.substr(0, csv.find('\n'));
    csv.remove_prefix(std::min(csv.size(), line.size() + 1));
    std::vector<CellAction>& row = out.emplace_back();
    for (at.cell = 1; actions <= kMaxActions; ++at.cell) {
      const std::string_view cell = line.substr(0, line.find(','));
      const std::string_view written = without_quotes(cell);
      if (!written.empty())
        if (const std::optional<CellAction> action = CellReader({at, written}, problems).read()) {
          check(*action, problems);
          row.push_back(*action);
          ++actions;
        }
      if (cell.size() == line.size()) break;
      line.remove_prefix(cell.size() + 1);
    }
  }
  if (!csv.empty() || actions > kMaxActions)
    problems.add(text("has more than {} lines or {} actions, the limits of a schedule", kMaxLines, kMaxActions));
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

bool is_whole(const CellAction& action, Problems& problems) {
  if (action.stage < 0) problems.add(action.cell, "has no stage", kForm);
  if (action.microbatch < 0) problems.add(action.cell, "has no microbatch", kForm);
  return action.stage >= 0 && action.microbatch >= 0;
}

Action compute_action(const CellAction& action) {
  const std::size_t kind = std::string_view("FBIW").find(action.kind.front()); // in the order of ComputeKind
  return {static_cast<ComputeKind>(kind), static_cast<std::int16_t>(action.replica), action.stage, action.microbatch,
          action.slice};
}

void refuse_kind(const CellAction& action, std::string_view message, Problems& problems) {
  constexpr std::string_view kHint = "remove cells of that kind, or use a file with only the compute actions";
  if (action.kind == "UNSHARD" || action.kind == "RESHARD")
    return problems.add(
        action.cell, "gathers or drops weights; Triax adds such actions with optimizer.shard = \"parameters\"", kHint);
  if (action.kind.starts_with("WAIT_"))
    return problems.add(action.cell, "is a wait of PyTorch; Triax adds the waits that an action needs", kHint);
  problems.add(action.cell, message, kForm);
}

} // namespace triax::csv
