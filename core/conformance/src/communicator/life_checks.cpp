// SPDX-License-Identifier: Apache-2.0
// Lifetime of a backend and its communicators: what it declares, joining, several groups.
#include <memory>
#include <string>
#include <vector>

#include "communicator_check_tables.hpp"

namespace triax::conformance {

namespace {

std::string traits_text(const CommTraits& traits) {
  return text("order {}, send {} of {} bytes, post {}, reduction {}, ranks {}, stream_ordered {}",
              static_cast<int>(traits.order), static_cast<int>(traits.send), traits.buffered_bytes,
              static_cast<int>(traits.post), static_cast<int>(traits.reduction), static_cast<int>(traits.ranks),
              traits.stream_ordered);
}

std::string refusals_text(const Refusals& refusals) {
  std::string out;
  for (const Refusal& refusal : refusals) out += refusal.message + "\n";
  return out;
}

void same_answers(const CommunicatorSubject& subject, Report& report) {
  run_ranks(subject.setup, 2, report, [&subject](Rank& rank) {
    const CommRequest requests[] = {
        {DeviceKind::host, {std::string(kTensorAxis)}, !subject.setup.processes},
        {DeviceKind::cuda, {std::string(kPipelineAxis), std::string(kDataAxis)}, false, false}};
    const auto answers = [&](CommBackend& backend) {
      std::string out = traits_text(backend.traits());
      for (const CommRequest& request : requests) out += "; " + refusals_text(backend.supports(request));
      return out;
    };
    const Object<CommBackend> unstarted =
        subject.setup.backend({subject.setup.options, *subject.setup.log, rank.layout(), rank.index(), 1});
    const std::string first = answers(*unstarted);
    rank.expect(answers(*unstarted) == first, "traits() and supports() answer \"{}\" and then \"{}\"", first,
                answers(*unstarted));
    const std::string started = answers(rank.backend());
    rank.expect(started == first, "traits() and supports() answer \"{}\" before start(), but \"{}\" after it", first,
                started);
    rank.join(kTensorAxis);
    const std::string joined = answers(rank.backend());
    rank.expect(joined == first, "traits() and supports() answer \"{}\" before join(), but \"{}\" after it", first,
                joined);
    rank.barrier("end");
  });
}

void without_a_group(const CommunicatorSubject& subject, Report& report) {
  run_ranks(subject.setup, 1, report, [](Rank& rank) { rank.backend(); });
}

void size_and_index(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    rank.expect(comm.size() == rank.layout().world_size() && comm.rank() == rank.index(),
                "join() of rank {} of {} gives a communicator of member {} of {}", rank.index(),
                rank.layout().world_size(), comm.rank(), comm.size());
    rank.expect(comm.group().id == "tensor.0", "group().id is {}, must be tensor.0", comm.group().id);
    comm.barrier(rank.deadline());
  });
}

/// Whether a number of the text is this rank: not "1" of "0.1 s", "127.0.0.1" or "tensor.1".
bool names_rank(const std::string& text, int rank) {
  const std::string name = to_text(rank);
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; ++at) {
    const std::size_t end = at + name.size();
    const bool is_begin = at == 0 || (!is_digit(at - 1) && text[at - 1] != '.');
    const bool is_end = !is_digit(end) && (end >= text.size() || text[end] != '.' || !is_digit(end + 1));
    if (is_begin && is_end) return true;
  }
  return false;
}

void join_names_missing_ranks(const CommunicatorSubject& subject, Report& report) {
  run_ranks(subject.setup, 3, report, [](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), kTensorAxis);
    CommBackend& backend = rank.backend();
    rank.join_world(); // a library that initializes all processes together does so here
    if (rank.index() == 0) {
      const std::string error = rank.expect_error("join() of the only member",
                                                  [&] { backend.join(group, rank.store(), deadline_in(0.2)); }, {});
      for (const int missing : {1, 2})
        rank.expect(error.empty() || names_rank(error, missing),
                    "join() of the only member must name the missing rank {}; the error is \"{}\"", missing, error);
      rank.store().set("left", "");
    } else {
      rank.store().get("left", rank.long_deadline());
      rank.expect_error("join() after a member has given up",
                        [&] { backend.join(group, rank.store(), deadline_in(0.2)); }, {"rank 0"});
    }
    rank.barrier("end");
  });
}

void joined_again(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 3, report, [](Rank& rank, Communicator& first) {
    const auto sum = [&](Communicator& comm, int value) {
      const TensorView view = number(rank, value);
      rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
      rank.expect(number_in(rank, view) == 3 * value, "an all_reduce gives {}, must be {}", number_in(rank, view),
                  3 * value);
    };
    for (int round = 1; round <= 3; ++round) {
      Communicator& again = rank.join(kTensorAxis); // beside the earlier ones
      sum(again, round);
      sum(first, 10 * round);
    }
    {
      const std::unique_ptr<Communicator> ended =
          rank.backend().join(rank.layout().group(rank.index(), kTensorAxis), rank.store(), rank.deadline());
      sum(*ended, 5);
      ended->barrier(rank.deadline());
    }
    sum(rank.join(kTensorAxis), 6); // after an earlier one has ended
  });
}

/// The groups of three axes, and of the world: each member is in four groups, and has calls in all of them.
void groups_side_by_side(const CommunicatorSubject& subject, Report& report) {
  run_ranks(subject.setup, Layout::ptd(2, 2, 2), report, [](Rank& rank) {
    const std::string axes[] = {std::string(kTensorAxis), std::string(kDataAxis), std::string(kPipelineAxis), "world"};
    std::vector<Communicator*> comms;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<TensorView> views;
    std::vector<Work> works;
    for (const std::string& axis : axes) {
      const bool is_world = axis == "world";
      comms.push_back(is_world ? &rank.join_world() : &rank.join(axis));
      streams.push_back(rank.device().make_stream(axis));
      views.push_back(number(rank, 1 << rank.index()));
    }
    for (std::size_t i = 0; i < comms.size(); ++i)
      works.push_back(comms[i]->all_reduce(views[i], views[i], Reduce::sum, *streams[i]));
    for (const Work& work : works) rank.wait(work);
    for (std::size_t i = 0; i < comms.size(); ++i) {
      std::int32_t expected = 0;
      for (const int member : comms[i]->group().ranks) expected += 1 << member;
      streams[i]->ready();
      rank.expect(number_in(rank, views[i]) == expected, "the all_reduce of group {} gives {}, must be {}",
                  comms[i]->group().id, number_in(rank, views[i]), expected);
    }
  });
}

/// One member posts the calls of two groups with the same members in the other order.
void groups_do_not_wait(const CommunicatorSubject& subject, Report& report) {
  run_ranks(subject.setup, 3, report, [](Rank& rank) {
    Communicator& tensor = rank.join(kTensorAxis);
    Communicator& world = rank.join_world();
    const std::unique_ptr<Stream> other = rank.device().make_stream("other");
    const TensorView a = number(rank, 1), b = number(rank, 100);
    const auto first = [&] { rank.wait(tensor.all_reduce(a, a, Reduce::sum, rank.stream())); };
    Work of_world;
    if (rank.index() != 1) of_world = world.all_reduce(b, b, Reduce::sum, *other);
    first();
    if (rank.index() == 1) of_world = world.all_reduce(b, b, Reduce::sum, *other);
    rank.wait(of_world);
    other->ready();
    rank.expect(number_in(rank, a) == 3 && number_in(rank, b) == 300, "two groups give {} and {}, must be 3 and 300",
                number_in(rank, a), number_in(rank, b));
  });
}

constexpr CommCheck kLifeChecks[] = {
    {"Backend.AnswersTheSameEachTime", "C1", nullptr, same_answers},
    {"Backend.MayJoinNoGroup", "C1", nullptr, without_a_group},
    {"Join.GivesSizeAndIndex", "C2", nullptr, size_and_index},
    {"Join.NamesTheMissingRanks", "C3", nullptr, join_names_missing_ranks},
    {"Join.AGroupMayBeJoinedAgain", "C4", nullptr, joined_again},
    {"Groups.OfAllAxesWorkSideBySide", "C5", nullptr, groups_side_by_side},
    {"Groups.DoNotWaitForOneAnother", "C5", unless_tagged, groups_do_not_wait},
};

} // namespace

std::span<const CommCheck> life_checks() {
  return kLifeChecks;
}

} // namespace triax::conformance
