// SPDX-License-Identifier: Apache-2.0
// How the members of a group find each other through the store, for communicator backends: each member publishes what
// the others need to connect, collects what they published, and compares it. If one member fails, the others stop
// waiting, with its reason.
//
//   Rendezvous rendezvous("comm-mine", 1, {group, store, device, deadline});
//   return rendezvous.run([&] {
//     rendezvous.publish({version, address});
//     const std::vector<Rendezvous::Entry> members = rendezvous.collect();
//     rendezvous.require_equal(members, 0, "libmine", "install the same libmine on all machines");
//     ...connect, calling rendezvous.poll() while waiting...
//   });
//
// Threads: the rank's main thread. Ownership: borrows group, store and device. Blocking: collect() and get(),
// until the deadline; they run the progress loop. Errors: Error located at the group; it names ranks.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/wait_deadline.hpp"

namespace triax {

/// The ranks of a group as text: "0, 2, 4".
TRIAX_API std::string ranks_text(const Group& group);

/// The exchange of one member with the others while they join a group.
class TRIAX_API Rendezvous {
 public:
  /// The objects that the member uses; all must outlive the rendezvous.
  struct Context {
    const Group& group;
    Store& store;
    Device& device;
    Deadline deadline;
  };
  /// The texts that one member published.
  using Entry = std::vector<std::string>;

  /// `backend` is the plugin's name, and `version` that of its protocol: all members must have the same. A member's
  /// k-th rendezvous of a group matches the k-th of the others, on any of its backends.
  Rendezvous(std::string_view backend, int version, const Context& context);

  /// Runs `body`, and returns its result. If it throws, the other members stop waiting with its error.
  template <class Body>
  auto run(Body body) {
    try {
      check();
      return body();
    } catch (const std::exception& error) {
      publish_failure(error.what());
      throw;
    }
  }

  /// Publishes this member's entry. Only the last value may contain line breaks.
  void publish(std::initializer_list<std::string> values);
  /// Waits for the entries of all members, and returns them in the order of the group. Throws Error if members differ
  /// in the protocol, in the group's ranks, or in the number of values.
  std::vector<Entry> collect();
  /// Throws Error unless value `at` is the same in all entries: "rank 1 has `what` 2.20, rank 0 has 2.28".
  void require_equal(const std::vector<Entry>& members, std::size_t at, std::string_view what,
                     std::string_view hint) const;

  /// Publishes another value; get() waits for it.
  void set(std::string_view name, std::string_view value);
  /// Waits for a value that a member has published.
  std::string get(std::string_view name);

  /// Announces that this member has reached the point `name`.
  void reach(std::string_view name);
  /// The members that have not reached it, as ranks: "1, 3". Empty if all have.
  std::string missing(std::string_view name);

  /// One round of a wait: runs the progress loop, and checks the rank's abort flag. Regularly checks whether another
  /// member failed; then throws its reason.
  void poll();
  /// Whether the deadline has passed, without the time in which the process was stopped. To be called in each round.
  bool expired() noexcept { return deadline_.passed(); }
  /// The error for members that did not join before the deadline. `during` (may be empty) names what was waited for.
  Error timeout(std::string_view ranks, std::string_view during = {}) const;

  /// Prefix of this rendezvous' keys in the store, and of the group in messages.
  const std::string& key() const { return key_; }
  /// The group and a member, as messages name them: "group tensor.0", "rank 2".
  /// @{
  std::string where() const { return text("group {}", context_.group.id); }
  std::string rank_text(int member) const;
  /// @}

 private:
  bool fetch(const std::string& key, std::string& value);
  Entry parse(int member, const std::string& value) const;
  void check();
  void publish_failure(std::string_view why) noexcept;

  Context context_;
  WaitDeadline deadline_;
  std::string key_, protocol_;
  std::size_t values_ = 0;
  Deadline next_check_ = Clock::now();
};

} // namespace triax
