// SPDX-License-Identifier: Apache-2.0
#include "launch/node_list.hpp"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "triax/error.hpp"

namespace triax::launch {
namespace {

// Slurm's limit for a cluster. A longer list is invalid and would fill the memory.
constexpr std::size_t kMaxNodes = 65536;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

/// Parses one list from front to end.
class Cursor {
 public:
  Cursor(std::string_view list, std::string_view what) : list_(list), what_(what) {}

  bool at_end() const { return at_ == list_.size(); }
  char peek() const { return at_end() ? '\0' : list_[at_]; }
  bool take(char c) {
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  template <class Is>
  std::string_view take_while(Is is) {
    const std::size_t from = at_;
    while (!at_end() && is(peek())) ++at_;
    return list_.substr(from, at_ - from);
  }
  std::string_view digits() {
    const std::string_view out = take_while(is_digit);
    if (out.empty()) fail_here("a number");
    return out;
  }
  std::uint64_t value(std::string_view digits) const {
    std::uint64_t out = 0;
    if (std::from_chars(digits.begin(), digits.end(), out).ec != std::errc())
      fail(text("the number {} is too large", digits));
    return out;
  }

  [[noreturn]] void fail(const std::string& why) const { throw Error(text("{} \"{}\": {}", what_, list_, why)); }
  [[noreturn]] void fail_here(std::string_view expected) const {
    fail(at_end() ? text("it ends, but {} is expected", expected)
                  : text("found \"{}\", but {} is expected", list_.substr(at_), expected));
  }
  [[noreturn]] void fail_count() const { fail(text("more than {} nodes", kMaxNodes)); }

 private:
  std::string_view list_, what_;
  std::size_t at_ = 0;
};

/// "003-005" or "7": appends the numbers as text, padded to the width of the first.
void read_range(Cursor& cursor, std::vector<std::string>& out) {
  const std::string_view low = cursor.digits();
  const std::string_view high = cursor.take('-') ? cursor.digits() : low;
  const std::uint64_t first = cursor.value(low), last = cursor.value(high);
  if (last < first) cursor.fail(text("the range {}-{} is descending", low, high));
  if (last - first >= kMaxNodes - out.size()) cursor.fail_count();
  for (std::uint64_t i = 0; i <= last - first; ++i) {
    const std::string number = std::to_string(first + i);
    out.push_back(std::string(low.size() > number.size() ? low.size() - number.size() : 0, '0') + number);
  }
}

/// The rest after "[": "003-005,7]".
std::vector<std::string> read_bracket(Cursor& cursor) {
  std::vector<std::string> out;
  do read_range(cursor, out);
  while (cursor.take(','));
  if (!cursor.take(']')) cursor.fail_here("\"-\", \",\" or \"]\"");
  return out;
}

/// All names with all endings; the endings vary fastest.
std::vector<std::string> multiply(const Cursor& cursor, const std::vector<std::string>& names,
                                  const std::vector<std::string>& endings) {
  if (names.size() * endings.size() > kMaxNodes) cursor.fail_count();
  std::vector<std::string> out;
  out.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) out.push_back(name + ending);
  }
  return out;
}

/// "gpu[003-005]-ib", up to the next "," outside brackets.
std::vector<std::string> read_item(Cursor& cursor) {
  std::vector<std::string> names = {""};
  if (!is_name(cursor.peek()) && cursor.peek() != '[') cursor.fail_here("a node's name");
  while (!cursor.at_end() && cursor.peek() != ',') {
    if (cursor.take('[')) {
      names = multiply(cursor, names, read_bracket(cursor));
    } else {
      const std::string_view part = cursor.take_while(is_name);
      if (part.empty()) cursor.fail_here("a letter of a name, \"[\" or \",\"");
      names = multiply(cursor, names, {std::string(part)});
    }
  }
  return names;
}

int task_count(const Cursor& cursor, std::string_view digits) {
  const std::uint64_t count = cursor.value(digits);
  if (count > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    cursor.fail(text("the number {} is too large", digits));
  return static_cast<int>(count);
}

/// The part after a count: "(x3)" or nothing.
std::uint64_t read_repeat(Cursor& cursor) {
  if (!cursor.take('(')) return 1;
  if (!cursor.take('x')) cursor.fail_here("\"x\"");
  const std::uint64_t repeat = cursor.value(cursor.digits());
  if (!cursor.take(')')) cursor.fail_here("\")\"");
  if (repeat == 0) cursor.fail("a count for 0 nodes");
  return repeat;
}

} // namespace

std::vector<std::string> parse_node_list(std::string_view list) {
  Cursor cursor(list, "the node list");
  std::vector<std::string> nodes;
  do {
    const std::vector<std::string> item = read_item(cursor);
    if (nodes.size() + item.size() > kMaxNodes) cursor.fail_count();
    nodes.insert(nodes.end(), item.begin(), item.end());
  } while (cursor.take(','));
  return nodes; // read_item() ends only at "," or at the end
}

std::vector<int> parse_tasks_per_node(std::string_view list) {
  Cursor cursor(list, "the list of tasks per node");
  std::vector<int> tasks;
  do {
    const int count = task_count(cursor, cursor.digits());
    const std::uint64_t repeat = read_repeat(cursor);
    if (repeat > kMaxNodes - tasks.size()) cursor.fail_count();
    tasks.insert(tasks.end(), repeat, count);
  } while (cursor.take(','));
  if (!cursor.at_end()) cursor.fail_here("\"(x\" or \",\"");
  return tasks;
}

} // namespace triax::launch
