#include "file_faults.hpp"

#include <algorithm>
#include <optional>
#include <regex>
#include <string>

#include "schedule/rules.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using schedule::CsvFile;

/// Slots are not written in a file but given out by reading it: what is wrong with one follows from something else.
bool is_of_slots(const Support& fault) {
  return fault.reason().find(" of pool ") != std::string::npos || fault.reason().find(": pool ") != std::string::npos;
}

class Words {
 public:
  explicit Words(const CsvFile& file) : file_(file) {}

  Support of(const Support& fault) const {
    static const std::regex kLead(R"(^rank (\d+), position (\d+), ([^:]+): (.*)$)"), kRank(R"(^rank (\d+): (.*)$)");
    const std::string& reason = fault.reason();
    std::smatch found;
    if (std::regex_match(reason, found, kLead)) {
      const std::size_t rank = std::stoul(found[1]);
      const CsvFile::Step* step = step_at(rank, std::stoul(found[2]), found[3]);
      const std::string cell = step ? text(":{}", step->cell) : std::string();
      return Support::no("{}:{}{}: {}: {}", file_.name, rank + 1, cell, found[3].str(), inner(found[4], rank))
          .hint("{}", hint_of(fault));
    }
    if (std::regex_match(reason, found, kRank))
      return Support::no("{}:{}: {}", file_.name, std::stoul(found[1]) + 1, found[2].str()).hint("{}", hint_of(fault));
    return Support::no("{}: {}", file_.name, reason).hint("{}", hint_of(fault));
  }

 private:
  static std::string label(const CsvFile::Step& step) {
    return schedule::action_text(step.kind, step.stage, step.microbatch);
  }

  /// The program of a file of compute actions has other positions than its lines: there the action's text tells.
  const CsvFile::Step* step_at(std::size_t rank, std::size_t position, const std::string& text_of) const {
    if (rank >= file_.steps.size()) return nullptr;
    const std::vector<CsvFile::Step>& steps = file_.steps[rank];
    if (position < steps.size() && label(steps[position]) == text_of) return &steps[position];
    const auto found = std::ranges::find_if(steps, [&](const CsvFile::Step& step) { return label(step) == text_of; });
    return found == steps.end() ? nullptr : &*found;
  }

  std::string cell_at(std::size_t rank, std::size_t position) const {
    const bool known = rank < file_.steps.size() && position < file_.steps[rank].size();
    return known ? text("cell {}", file_.steps[rank][position].cell) : text("position {}", position);
  }

  /// Every place that is named behind the first, which is on `own`.
  std::string inner(const std::string& reason, std::size_t own) const {
    static const std::regex kPlace(R"(rank (\d+), position (\d+)|position (\d+) of rank (\d+)|position (\d+))");
    std::string out;
    auto rest = reason.begin();
    for (std::sregex_iterator at(reason.begin(), reason.end(), kPlace), end; at != end; ++at) {
      const std::smatch& found = *at;
      out.append(rest, found[0].first);
      rest = found[0].second;
      if (found[5].matched) {
        out += cell_at(own, std::stoul(found[5]));
        continue;
      }
      const std::size_t rank = std::stoul(found[1].matched ? found[1] : found[4]);
      out += text("line {}, {}", rank + 1, cell_at(rank, std::stoul(found[2].matched ? found[2] : found[3])));
    }
    return out.append(rest, reason.end());
  }

  std::string hint_of(const Support& fault) const {
    if (file_.lowered && fault.reason().ends_with("OPT_STEP is missing"))
      return "a row of a lowered file ends with REDUCE_TIED,NORM,OPT_STEP, after a 3REDUCE_GRAD for each of its stages";
    if (file_.lowered && fault.reason().ends_with("would wait for ever"))
      return "use a file of the compute actions alone: their transfers get an order in which nothing waits for itself";
    return fault.hint();
  }

  const CsvFile& file_;
};

} // namespace

std::vector<Support> in_words_of_file(const CsvFile& file, const std::vector<Support>& faults) {
  const bool only_slots = std::ranges::all_of(faults, is_of_slots);
  const Words words(file);
  std::vector<Support> out;
  for (const Support& fault : faults)
    if (only_slots || !is_of_slots(fault)) out.push_back(words.of(fault));
  return out;
}

} // namespace triax::app
