// SPDX-License-Identifier: Apache-2.0
#include "schedule/csv_violations.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "triax/text.hpp"

namespace triax::app {

namespace {

using schedule::ActionRef;
using schedule::CsvFile;
using schedule::Violation;

/// Locates violations by line and cell, from 1.
class LocatorInFile final : public schedule::Locator {
 public:
  explicit LocatorInFile(const CsvFile& file) : file_(file) {}

  std::string lead(const ActionRef& action, const std::string& name) const override {
    std::string out = file_.name;
    if (action.rank < 0) return out;
    out += text(":{}", action.rank + 1);
    if (const CsvFile::LocatedAction* found = in_file(action)) out += text(":{}", found->cell);
    return name.empty() ? out : text("{}: {}", out, name);
  }
  std::string location(const ActionRef& action) const override {
    return text("line {}, {}", action.rank + 1, here(action));
  }
  std::string here(const ActionRef& action) const override {
    const CsvFile::LocatedAction* found = in_file(action);
    return found ? text("cell {}", found->cell) : "no cell";
  }
  std::string there(const ActionRef& action) const override { return location(action); }

 private:
  /// Null if the file does not have the action.
  const CsvFile::LocatedAction* in_file(const ActionRef& action) const {
    const std::vector<CsvFile::LocatedAction>& actions = file_.actions.at(static_cast<std::size_t>(action.rank));
    if (!action.position) return nullptr;
    if (*action.position < actions.size() && is(actions[*action.position], action)) return &actions[*action.position];
    // A program lowered from compute actions has other positions, but each action once.
    const auto found =
        std::ranges::find_if(actions, [&](const CsvFile::LocatedAction& one) { return is(one, action); });
    return found == actions.end() ? nullptr : &*found;
  }
  static bool is(const CsvFile::LocatedAction& one, const ActionRef& action) {
    using schedule::Kind;
    const bool is_half = action.kind == Kind::backward_input || action.kind == Kind::backward_weight;
    const bool has_kind = one.kind == action.kind || (is_half && one.kind == Kind::backward); // 3B1 has 3I1 and 3W1
    return has_kind && one.stage == action.stage && one.microbatch == action.microbatch;
  }

  const CsvFile& file_;
};

std::string hint_of(const CsvFile& file, const Violation& violation) {
  if (file.lowered && violation.rule == Violation::Rule::present && violation.at.kind == schedule::Kind::opt_step)
    return "a row of a lowered file ends with a 3REDUCE_GRAD for each of its stages, REDUCE_TIED, NORM, and a "
           "3OPT_STEP "
           "for each of its stages";
  if (file.lowered && violation.rule == Violation::Rule::present && violation.at.kind == schedule::Kind::gather_param)
    return "write a 3GATHER_PARAM after the 3OPT_STEP of each stage, or for none";
  if (file.lowered && violation.pool == schedule::Pool::weights && violation.is_of_slots())
    return "write a 3UNSHARD before the passes of stage 3 that read its weights (F, B, I, R), and a 3RESHARD after "
           "them; "
           "or remove all UNSHARD and RESHARD";
  if (file.lowered && violation.rule == Violation::Rule::no_cycle)
    return "use a file with only the compute actions: Triax adds the transfers in an order without deadlock";
  return violation.remedy();
}

} // namespace

Refusal text_of_file(const CsvFile& file, const Violation& violation) {
  return make_refusal(ErrorCode::kInvalidSchedule, {}, "{}", violation.reason(LocatorInFile(file)))
      .with_hint("{}", hint_of(file, violation));
}

std::vector<Violation> without_consequences(std::vector<Violation> violations) {
  if (!std::ranges::all_of(violations, &Violation::is_of_slots))
    std::erase_if(violations, [](const Violation& of) { return of.is_of_slots(); });
  return violations;
}

} // namespace triax::app
