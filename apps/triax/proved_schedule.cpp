#include "proved_schedule.hpp"

#include <algorithm>
#include <iterator>

#include "plugin/asking.hpp"
#include "schedule/lower.hpp"
#include "schedule/verify.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

constexpr std::size_t kShownFaults = 20; // a slip of a scheduler is often the same on every rank

Support size_of(const PipelineShape& shape) {
  if (std::int64_t{shape.pipeline} * shape.chunks * shape.microbatches <= schedule::kMostActions) return Support::yes();
  return Support::no("p = {} x v = {} x m = {} is more than {} actions of each kind", shape.pipeline, shape.chunks,
                     shape.microbatches, schedule::kMostActions)
      .hint("use smaller sizes");
}

std::vector<config::Refusal> told(const ScheduleSource& source, const std::vector<Support>& faults) {
  std::vector<config::Refusal> out;
  for (std::size_t at = 0; at < std::min(faults.size(), kShownFaults); ++at) {
    const Support named =
        Support::no("{}: {}", source.scheduler.name, faults[at].reason()).hint("{}", faults[at].hint());
    out.push_back(config::refusal(named, source.values));
  }
  if (faults.size() > kShownFaults) out.push_back({text("... and {} more", faults.size() - kShownFaults)});
  return out;
}

/// The rows, then the programs made of them.
std::vector<Support> faults_of(ProvedSchedule& made, const PipelineShape& shape, const Proof& proof) {
  std::vector<Support> faults = schedule::verify(made.schedule, shape);
  if (!faults.empty()) return faults;
  const schedule::Assumptions least{CommTraits::Order::serial, CommTraits::Send::rendezvous,
                                    CommTraits::Post::blocking};
  made.programs = schedule::lower(made.schedule, shape);
  faults = schedule::verify(made.programs, {shape, false, proof.cap}, least);
  if (proof.evaluation)
    std::ranges::move(schedule::verify(schedule::lower_forward_only(made.schedule, shape), {shape, true}, least),
                      std::back_inserter(faults));
  return faults;
}

} // namespace

ProvedSchedule refused(const ScheduleSource& source, const Support& answer) {
  return {{}, {}, {config::refusal(answer, source.values)}, kRefused};
}

ProvedSchedule prove(const ScheduleSource& source, const Proof& proof) {
  if (!source.refusals.empty()) return {{}, {}, source.refusals, kRefused};
  if (const Support answer = size_of(source.shape); !answer) return refused(source, answer);
  const PluginContext context{source.scheduler.options, null_log(), source.layout};
  const std::string& name = source.scheduler.name;
  ProvedSchedule out;
  try {
    const auto scheduler = plugin::create<Scheduler>(*source.scheduler.library, context);
    const Support answer = plugin::asking(name, "supports", [&] { return scheduler->supports(source.shape); });
    if (!answer) return refused(source, answer);
    out.schedule = plugin::asking(name, "rows", [&] { return scheduler->rows(source.shape); });
  } catch (const Error& error) { // there is nothing to prove
    return {{}, {}, {{error.what()}}, kRefused};
  }
  const std::vector<Support> faults = faults_of(out, source.shape, proof);
  if (!faults.empty()) return {{}, {}, told(source, faults), kFailed};
  return out;
}

} // namespace triax::app
