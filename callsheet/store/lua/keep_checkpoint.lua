-- job:{id}  hash  checkpoint, checkpoint_before, checkpoint_step, checkpoint_format, run_useful, build
--
-- args: id, attempt, token, step, format, build ("" = any may resume it), gpu_s useful so far, checkpoint (JSON).
-- Answers {"fenced"}, or {"kept", key ...} with the JSON of what no longer counts: the one before the one before, or
-- this one itself when a later step is kept already.

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not owns(job, arg(2), arg(3)) then
  return answer({ 'fenced' })
end
if filled(job.checkpoint) and num(arg(4)) <= num(job.checkpoint_step) then
  return answer({ 'kept', arg(8) })
end
local dropped = filled(job.checkpoint_before) and { 'kept', job.checkpoint_before } or { 'kept' }
set(job, {
  checkpoint_before = job.checkpoint or '', checkpoint = arg(8), checkpoint_step = arg(4),
  checkpoint_format = arg(5), build = arg(6), run_useful = arg(7),
})
return answer(dropped)
