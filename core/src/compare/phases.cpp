// SPDX-License-Identifier: Apache-2.0
#include "compare/phases.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "schedule/rules.hpp"
#include "triax/layout.hpp"

namespace triax::compare {

namespace {

using report::MeasuredCall;
using report::MeasuredWait;
using report::RankTimeline;
using Kind = schedule::Kind;

double overlap(const MeasuredWait& wait, double start, double end) {
  return std::max(0.0, std::min(wait.end, end) - std::max(wait.start, start));
}

/// A span's time without the waits in it.
double busy(const RankTimeline& rank, const schedule::Span& span) {
  double out = span.length();
  for (const MeasuredWait& wait : rank.waits) out -= overlap(wait, span.start, span.end);
  return out;
}

/// When the message that this call receives was sent. Messages between two ranks arrive in the order of their sends.
std::optional<double> sent_at(std::span<const RankTimeline> ranks, const RankTimeline& to,
                              const MeasuredCall& received) {
  if (received.call != "receive" || received.peer < 0 || received.peer >= std::ssize(ranks)) return std::nullopt;
  std::size_t before = 0;
  for (const MeasuredCall& call : to.calls) {
    if (&call == &received) break;
    before += call.call == "receive" && call.peer == received.peer ? 1 : 0;
  }
  for (const MeasuredCall& call : ranks[static_cast<std::size_t>(received.peer)].calls)
    if (call.call == "send" && call.peer == to.rank && before-- == 0) return call.posted;
  return std::nullopt;
}

/// The call that a wait is for: of the action that it names, or of a collective within a pass.
const MeasuredCall* call_of(const RankTimeline& rank, const MeasuredWait& wait) {
  for (const MeasuredCall& call : rank.calls)
    if (call.action == wait.reason && (wait.peer < 0 || call.peer == wait.peer)) return &call;
  for (const MeasuredCall& call : rank.calls)
    if (call.awaited && call.completed == wait.end) return &call;
  return nullptr;
}

void add_wait(std::span<const RankTimeline> ranks, const RankTimeline& rank, const MeasuredWait& wait, Phases& out) {
  const MeasuredCall* const call = call_of(rank, wait);
  if (!call) return; // part of `other`
  const double waited = wait.end - wait.start;
  const std::optional<double> sent = sent_at(ranks, rank, *call);
  const double not_sent = sent ? std::clamp(*sent - wait.start, 0.0, waited) : 0;
  out.stage_wait += not_sent;
  out.exposed[call->axis] += waited - not_sent;
}

Phases of_rank(std::span<const RankTimeline> ranks, const RankTimeline& rank) {
  Phases out;
  for (const schedule::MeasuredPass& pass : rank.passes)
    (pass.span.kind == Kind::forward ? out.forward : out.backward) += busy(rank, pass.span);
  for (const schedule::MeasuredPass& action : rank.actions)
    if (action.span.kind == Kind::norm || action.span.kind == Kind::opt_step) out.optimizer += busy(rank, action.span);
  for (const MeasuredWait& wait : rank.waits) add_wait(ranks, rank, wait, out);
  return out;
}

/// Adds `scale` times each part.
void add(Phases& to, const Phases& of, double scale) {
  for (double Phases::*part :
       {&Phases::forward, &Phases::backward, &Phases::optimizer, &Phases::stage_wait, &Phases::other, &Phases::step})
    to.*part += scale * of.*part;
  for (const auto& [axis, waited] : of.exposed) to.exposed[axis] += scale * waited;
}

double sum(const Phases& of) {
  double out = of.forward + of.backward + of.optimizer + of.stage_wait;
  for (const auto& [axis, waited] : of.exposed) out += waited;
  return out;
}

} // namespace

Phases phases_of(std::span<const RankTimeline> ranks) {
  Phases out;
  double start = 0, end = 0;
  for (const RankTimeline& rank : ranks) {
    add(out, of_rank(ranks, rank), 1 / static_cast<double>(ranks.size()));
    start = &rank == ranks.data() ? rank.start : std::min(start, rank.start);
    end = &rank == ranks.data() ? rank.end : std::max(end, rank.end);
  }
  out.step = end - start;
  out.other = out.step - sum(out);
  return out;
}

} // namespace triax::compare
