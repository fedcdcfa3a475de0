// SPDX-License-Identifier: Apache-2.0
// The abort flag of a run: the first rank that fails raises it, and whoever listens in this process is told at once.
//
// Threads: any. Ownership: borrows its listeners, which must outlive their Listening. Blocking: raise() and the end of
// a Listening wait for a listener that is being told. Errors: none; out of memory costs the text alone.
// A rank's failure in another process is raised here by the connection that hears of it (Client).
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace triax::control {

class AbortFlag {
 public:
  class Listener {
   public:
    virtual ~Listener();
    /// Any thread. Soon after, whatever the listener waits for has to fail with `why`.
    virtual void abort(std::string_view why) noexcept = 0;
  };

  /// Tells the listener for as long as this object lives; at once if the flag has been raised.
  class Listening {
   public:
    Listening(AbortFlag& flag, Listener& listener);
    ~Listening();
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    AbortFlag& flag_;
    Listener& listener_;
  };

  /// The first rank counts, and stays. True if it is `rank`: its failure is the cause, not a consequence.
  bool raise(int rank, std::string_view why) noexcept;
  /// The same for what was heard from elsewhere, with the whole reason: "rank 2 was lost: ...". A rank of -1: what
  /// failed is no rank ("the server of the job at 10.0.0.7:29500 was lost: ...").
  bool relay(int rank, std::string_view reason) noexcept;
  bool raised() const noexcept;
  /// "rank 2 failed: ..."; empty until raised.
  std::string reason() const;
  /// The rank that failed first; -1 until raised, and where what failed is no rank.
  int rank() const noexcept;

 private:
  template <class Reason>
  bool raise_with(int rank, Reason reason) noexcept;

  mutable std::mutex mutex_; // of what follows; held while listeners are told
  std::vector<Listener*> listeners_;
  bool raised_ = false;
  int rank_ = -1; // that failed first
  std::string reason_;
};

} // namespace triax::control
