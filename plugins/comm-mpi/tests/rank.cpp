// SPDX-License-Identifier: Apache-2.0
// One rank, which mpirun has started: rank SCENARIO FOLDER.
#include <cstdlib>
#include <filesystem>

#include "support/rank_scenarios.hpp"

namespace {

using namespace triax;
using triax::test::Rank;

/// Two backends in a process, as of two tables. Rank 0 aborts a group of the first whose send cannot be cancelled; then
/// a call of the second must fail, because MPI could still read the buffer of the first.
void two_backends(int index, int ranks, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "second");
  conformance::FolderStore store(folder), other_store(folder / "second");
  const Layout layout = Layout::ptd(1, ranks, 1);
  Rank first(index, layout, store, test::under_test()), second(index, layout, other_store, test::under_test());
  Communicator &comm = first.join_world(), &other = second.join_world();
  if (index == 0) {
    const TensorView large = first.tensor(DType::f32, {test::scenarios::kLarge});
    const Transfer unmatched{Direction::send, 1, 0, large};
    const Work work = comm.exchange({&unmatched, 1}, first.stream());
    for (int i = 0; i < 100; ++i) first.device().progress(); // posts the send
    comm.abort("enough");
    try {
      first.wait(work);
    } catch (const Error&) {
      store.set("aborted", "");
      const TensorView view = second.tensor(DType::f32, {1});
      second.wait(other.all_reduce(view, view, Reduce::sum, second.stream()));
    }
    throw Error("wrong: no error");
  }
  store.get("aborted", Rank::deadline());
  for (Communicator* each : {&comm, &other}) each->abort("enough"); // else it would wait for rank 0 at the end
}

/// Posts transfers that no rank receives, until one is refused.
void too_many(int index, int ranks, const std::filesystem::path& folder) {
  conformance::FolderStore store(folder);
  const Layout layout = Layout::ptd(1, ranks, 1);
  Rank rank(index, layout, store, test::under_test());
  Communicator& comm = rank.join_world();
  if (index == 1) {
    store.get("refused", Rank::deadline());
    return comm.abort("enough");
  }
  const Transfer unmatched{Direction::send, 1, 0, rank.tensor(DType::f32, {1})};
  try {
    while (true) comm.exchange({&unmatched, 1}, rank.stream());
  } catch (const Error&) {
    store.set("refused", "");
    comm.abort("enough");
    throw;
  }
}

} // namespace

int main(int, char** arguments) {
  ::alarm(250); // ends a rank that hangs
  const auto number = [](const char* name) { return std::atoi(std::getenv(name)); };
  const std::string scenario = arguments[1];
  const int index = number("OMPI_COMM_WORLD_RANK"), ranks = number("OMPI_COMM_WORLD_SIZE");
  if (scenario != "two-backends" && scenario != "too-many")
    return test::scenarios::run(scenario, index, ranks, arguments[2], test::under_test(), false);
  try {
    (scenario == "too-many" ? too_many : two_backends)(index, ranks, arguments[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
