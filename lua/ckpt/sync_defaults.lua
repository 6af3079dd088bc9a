--- Numbers that the configuration and the syncers share.
return {
  sync_period = 300, -- seconds between two syncs of *_if_needed (item 137)
  sync_timeout = 1800, -- seconds after which a transfer is given up (item 137)
  max_retries = 3, -- tries of wait_or_retry (item 168)
  backoff_s = 5, -- seconds between two of them (item 168)
}
