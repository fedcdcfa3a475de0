#include "file_faults.hpp"

#include <algorithm>
#include <string>

#include "triax/text.hpp"

namespace triax::app {

namespace {

using schedule::CsvFile;
using schedule::Fault;
using schedule::Standing;

/// By line and cell, from 1.
class FindingInFile final : public schedule::Finding {
 public:
  explicit FindingInFile(const CsvFile& file) : file_(file) {}

  std::string lead(const Standing& action, const std::string& name) const override {
    std::string out = file_.name;
    if (action.rank < 0) return out;
    out += text(":{}", action.rank + 1);
    if (const CsvFile::Step* step = step_of(action)) out += text(":{}", step->cell);
    return name.empty() ? out : text("{}: {}", out, name);
  }
  std::string place(const Standing& action) const override {
    return text("line {}, {}", action.rank + 1, here(action));
  }
  std::string here(const Standing& action) const override {
    const CsvFile::Step* step = step_of(action);
    return step ? text("cell {}", step->cell) : "no cell";
  }
  std::string there(const Standing& action) const override { return place(action); }

 private:
  /// Null: the file does not have it, or has none of its kind.
  const CsvFile::Step* step_of(const Standing& action) const {
    const std::vector<CsvFile::Step>& steps = file_.steps.at(static_cast<std::size_t>(action.rank));
    if (!action.position) return nullptr;
    if (*action.position < steps.size() && is(steps[*action.position], action)) return &steps[*action.position];
    // The program that is made of a file of compute actions has other positions, and each action once.
    const auto found = std::ranges::find_if(steps, [&](const CsvFile::Step& step) { return is(step, action); });
    return found == steps.end() ? nullptr : &*found;
  }
  static bool is(const CsvFile::Step& step, const Standing& action) {
    return step.kind == action.kind && step.stage == action.stage && step.microbatch == action.microbatch;
  }

  const CsvFile& file_;
};

const char* hint_of(const CsvFile& file, const Fault& fault) {
  if (file.lowered && fault.rule == Fault::Rule::present && fault.at.kind == schedule::Kind::opt_step)
    return "a row of a lowered file ends with REDUCE_TIED,NORM,OPT_STEP, after a 3REDUCE_GRAD for each of its stages";
  if (file.lowered && fault.rule == Fault::Rule::no_circle)
    return "use a file of the compute actions alone: their transfers get an order in which nothing waits for itself";
  return "";
}

} // namespace

std::vector<Support> in_words_of_file(const CsvFile& file, const std::vector<Fault>& faults) {
  // Slots follow from the order of a file: what is wrong with one follows from something else.
  const bool only_slots = std::ranges::all_of(faults, &Fault::is_of_slots);
  const FindingInFile finding(file);
  std::vector<Support> out;
  for (const Fault& fault : faults)
    if (only_slots || !fault.is_of_slots())
      out.push_back(Support::no("{}", fault.reason(finding)).hint("{}", hint_of(file, fault)));
  return out;
}

} // namespace triax::app
