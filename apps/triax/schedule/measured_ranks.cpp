// SPDX-License-Identifier: Apache-2.0
#include "schedule/measured_ranks.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "schedule/lower.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

Error other_step(const report::RankTimeline& read, const report::RankTimeline& first, const ScheduleSource& source) {
  return Error(
      text("rank {} recorded step {}, but rank {} recorded step {}", read.rank, read.step, first.rank, first.step),
      source.folder.string(), "train again with log.timeline");
}

struct Shift {
  report::Machine machine;
  double ms = 0; // to add to its clock
};

/// For each machine of a group: what the comparison added to its times.
std::vector<Shift> shifts_of(const MeasuredGroup& group, const schedule::Comparison& comparison) {
  std::vector<Shift> out;
  out.reserve(group.machines.size());
  for (const report::Machine& machine : group.machines) out.push_back({machine, 0});
  for (std::size_t at = 0; at < group.ranks.size(); ++at) {
    const std::vector<schedule::Span>& aligned = comparison.measured.rows[at];
    if (!aligned.empty())
      out[static_cast<std::size_t>(group.clock_of[at])].ms =
          aligned.front().start - group.timelines[at].passes.front().span.start;
  }
  return out;
}

class AllRanks {
 public:
  AllRanks(const ScheduleSource& source, const VerifiedSchedule& verified) : source_(source), verified_(verified) {}

  void add(const MeasuredGroup& group, const schedule::Comparison* comparison) {
    if (const bool known = std::ranges::all_of(group.machines, [this](const auto& of) { return find(of) != nullptr; });
        !known)
      align(shifts_of(group, comparison ? *comparison : compare(group, source_, verified_)));
    for (const report::RankTimeline& timeline : group.timelines) {
      if (!timelines_.empty() && timeline.step != timelines_.front().step)
        throw other_step(timeline, timelines_.front(), source_);
      timelines_.push_back(timeline);
    }
  }

  MeasuredRanks take() {
    MeasuredRanks out{std::move(timelines_), {}};
    std::ranges::sort(out.timelines, {}, &report::RankTimeline::rank);
    for (const report::RankTimeline& timeline : out.timelines)
      out.traces.push_back({name_of(timeline.rank), &timeline, find(timeline.machine)->ms});
    return out;
  }

 private:
  const Shift* find(const report::Machine& machine) const {
    const auto found = std::ranges::find(shifts_, machine, &Shift::machine);
    return found == shifts_.end() ? nullptr : &*found;
  }

  /// The machines of `group` are aligned to each other; a machine that is already known aligns them to the others.
  void align(const std::vector<Shift>& group) {
    double between = 0;
    for (const Shift& of : group)
      if (const Shift* known = find(of.machine)) between = known->ms - of.ms;
    for (const Shift& of : group)
      if (!find(of.machine)) shifts_.push_back({of.machine, of.ms + between});
  }

  std::string name_of(int rank) const { return text("rank {}: {}", rank, source_.layout.describe(rank)); }

  const ScheduleSource& source_;
  const VerifiedSchedule& verified_;
  std::deque<report::RankTimeline> timelines_;
  std::vector<Shift> shifts_;
};

/// By stage, whether R ran. A model decides which stages have it, and the source has no model.
std::vector<bool> recomputed_stages(const schedule::MeasuredRows& rows, int stages) {
  std::vector<bool> out(static_cast<std::size_t>(stages));
  for (const std::vector<schedule::MeasuredPass>& row : rows)
    for (const auto& [span, waited_ms] : row)
      if (span.kind == schedule::Kind::recompute && span.stage >= 0 && span.stage < stages)
        out[static_cast<std::size_t>(span.stage)] = true;
  return out;
}

} // namespace

MeasuredGroup read_group(const ScheduleSource& source, int rank) {
  MeasuredGroup out;
  out.ranks = source.layout.group(rank, kPipelineAxis).ranks;
  for (const int member : out.ranks) {
    report::RankTimeline read = report::read_timeline(source.folder, member);
    if (read.ranks != source.layout.world_size())
      throw Error(text("rank {} recorded a run of {} ranks, but this run has {}", member, read.ranks,
                       source.layout.world_size()),
                  source.folder.string(), "use the TOML and the --set of the run that was trained, or train again");
    if (!out.timelines.empty() && read.step != out.timelines[0].step) throw other_step(read, out.timelines[0], source);
    const auto machine = std::ranges::find(out.machines, read.machine);
    out.clock_of.push_back(static_cast<int>(machine - out.machines.begin()));
    if (machine == out.machines.end()) out.machines.push_back(read.machine);
    out.timelines.push_back(std::move(read));
  }
  return out;
}

schedule::Comparison compare(const MeasuredGroup& group, const ScheduleSource& source,
                             const VerifiedSchedule& verified) {
  schedule::MeasuredRows rows;
  for (const report::RankTimeline& timeline : group.timelines) rows.push_back(timeline.passes);
  const std::vector<bool> recomputes = recomputed_stages(rows, source.shape.stages());
  try {
    return schedule::compare(std::ranges::find(recomputes, true) == recomputes.end()
                                 ? verified.programs
                                 : schedule::lower(verified.schedule, source.shape, source.boundaries, source.sharding,
                                                   source.prefetch, recomputes),
                             rows, source.shape, group.clock_of);
  } catch (const Error& error) {
    throw Error(error.message(), source.folder.string(), error.hint());
  }
}

MeasuredRanks read_ranks(const ScheduleSource& source, const VerifiedSchedule& verified, const MeasuredGroup& first,
                         const schedule::Comparison& comparison) {
  AllRanks out(source, verified);
  out.add(first, &comparison);
  for (int rank = 0; rank < source.layout.world_size(); ++rank)
    if (source.layout.coordinate(rank, kPipelineAxis) == 0 && rank != first.ranks.front())
      out.add(read_group(source, rank), nullptr);
  return out.take();
}

} // namespace triax::app
