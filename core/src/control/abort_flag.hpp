// SPDX-License-Identifier: Apache-2.0
// The job's abort flag in this process: the first rank that fails sets it, and it calls its listeners at once.
//
// Threads: any. Ownership: borrows its listeners, which must outlive their Listening. Blocking: raise() and the end of
// a Listening wait while a listener is called. Errors: none; without memory, only the reason is lost.
//
// The Client relays failures of ranks in other processes to this flag.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace triax::control {

class JobAbort {
 public:
  class Listener {
   public:
    virtual ~Listener();
    /// Any thread. Calls that the listener waits for must then fail with `why`, soon.
    virtual void abort(std::string_view why) noexcept = 0;
  };

  /// Registers the listener for as long as this object lives. If the flag is set, calls the listener at once.
  class Listening {
   public:
    Listening(JobAbort& flag, Listener& listener);
    ~Listening();
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    JobAbort& flag_;
    Listener& listener_;
  };

  /// Only the first rank counts. Returns whether that is `rank`: then its failure is the cause, not a consequence.
  bool raise(int rank, std::string_view why) noexcept;
  /// Sets the flag for a failure in another process, with the complete reason: "rank 2 was lost: ...". Rank -1: no
  /// rank failed, but the server was lost ("the server of the job at 10.0.0.7:29500 was lost: ...").
  bool relay(int rank, std::string_view reason) noexcept;
  bool raised() const noexcept;
  /// "rank 2 failed: ..."; empty until the flag is set.
  std::string reason() const;
  /// The rank that failed first; -1 until the flag is set, and if no rank failed.
  int rank() const noexcept;

 private:
  template <class Reason>
  bool raise_with(int rank, Reason reason) noexcept;

  mutable std::mutex mutex_; // protects the members below; held while listeners are called
  std::vector<Listener*> listeners_;
  bool raised_ = false;
  int rank_ = -1; // the rank that failed first
  std::string reason_;
};

} // namespace triax::control
