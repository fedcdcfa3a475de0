// SPDX-License-Identifier: Apache-2.0
// Collectives that move data: all_gather, all_to_all, broadcast; and calls without elements.
#include <cstdint>
#include <string>
#include <vector>

#include "collective_values.hpp"
#include "communicator_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr std::int64_t kParts[] = {0, 1, 33, 20'003};

std::string movement_text(const char* name, DType dtype, std::int64_t elements, int members) {
  return text("{} of {} {} in a group of {}", name, elements, name_of(dtype), members);
}

template <class T>
void all_gather_of(Rank& rank, Communicator& comm, std::int64_t part) {
  const DType dtype = dtype_of<T>();
  const std::string what = movement_text("all_gather", dtype, part, comm.size());
  std::vector<T> expected;
  for (int member = 0; member < comm.size(); ++member)
    for (const T value : input_of<T>(member, part)) expected.push_back(value);
  const TensorView in = rank.tensor(dtype, {part}, input_of<T>(comm.rank(), part));
  const TensorView out = rank.tensor(dtype, {part * comm.size()});
  rank.wait(comm.all_gather(in, out, rank.stream()));
  expect_elements(rank, what, out, expected);
  const TensorView whole = rank.tensor(dtype, {part * comm.size()});
  const TensorView own = whole.slice(0, part * comm.rank(), part * (comm.rank() + 1));
  rank.put(own, input_of<T>(comm.rank(), part));
  rank.wait(comm.all_gather(own, whole, rank.stream()));
  expect_elements(rank, what + ", in place", whole, expected);
}

void all_gather(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const DType dtype : kAllTypes)
      with_type(dtype, [&]<class T>(T) {
        for (const std::int64_t part : kParts) all_gather_of<T>(rank, comm, part);
      });
  });
}

template <class T>
void all_to_all_of(Rank& rank, Communicator& comm, std::int64_t part) {
  const DType dtype = dtype_of<T>();
  const std::int64_t elements = part * comm.size();
  std::vector<T> expected;
  for (int member = 0; member < comm.size(); ++member)
    for (std::int64_t i = 0; i < part; ++i)
      expected.push_back(value_of<T>(member, part * comm.rank() + i, Values::exact));
  const TensorView in = rank.tensor(dtype, {elements}, input_of<T>(comm.rank(), elements));
  const TensorView out = rank.tensor(dtype, {elements});
  rank.wait(comm.all_to_all(in, out, rank.stream()));
  expect_elements(rank, movement_text("all_to_all", dtype, elements, comm.size()), out, expected);
}

void all_to_all(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const DType dtype : kAllTypes)
      with_type(dtype, [&]<class T>(T) {
        for (const std::int64_t part : kParts) all_to_all_of<T>(rank, comm, part);
      });
  });
}

template <class T>
void broadcast_of(Rank& rank, Communicator& comm, std::int64_t elements, int root) {
  const DType dtype = dtype_of<T>();
  const TensorView view = rank.tensor(dtype, {elements}, input_of<T>(comm.rank(), elements));
  rank.wait(comm.broadcast(view, root, rank.stream()));
  expect_elements(rank, text("{} from member {}", movement_text("broadcast", dtype, elements, comm.size()), root), view,
                  input_of<T>(root, elements));
}

void broadcast(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root)
      for (const DType dtype : kAllTypes)
        with_type(dtype, [&]<class T>(T) {
          for (const std::int64_t elements : kParts) broadcast_of<T>(rank, comm, elements, root);
        });
  });
}

/// Views without elements have null data here, as a stage without parameters has.
void without_elements(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const TensorView none(nullptr, DType::f32, {0});
    Stream& stream = rank.stream();
    rank.wait(comm.all_reduce(none, none, Reduce::sum, stream));
    rank.wait(comm.reduce_scatter(none, none, Reduce::sum, stream));
    rank.wait(comm.all_gather(none, none, stream));
    rank.wait(comm.all_to_all(none, none, stream));
    rank.wait(comm.broadcast(none, comm.size() - 1, stream));
    const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
    const Transfer set[] = {send(next, none), receive(before, none)};
    rank.wait(comm.exchange(set, stream));
    const TensorView sum = number(rank, 1);
    rank.wait(comm.all_reduce(sum, sum, Reduce::sum, stream));
    rank.expect(number_in(rank, sum) == comm.size(),
                "the all_reduce behind calls without elements gives {}, must be {}", number_in(rank, sum), comm.size());
  });
}

constexpr CommCheck kMovementChecks[] = {
    {"AllGather.IsInTheOrderOfTheGroup", "C16", nullptr, all_gather},
    {"AllToAll.Transposes", "C17", nullptr, all_to_all},
    {"Broadcast.ComesFromEveryRoot", "C18", nullptr, broadcast},
    {"Collectives.MayHaveNoElements", "C19", nullptr, without_elements},
};

} // namespace

std::span<const CommCheck> movement_checks() {
  return kMovementChecks;
}

} // namespace triax::conformance
