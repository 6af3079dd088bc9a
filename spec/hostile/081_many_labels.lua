-- load: syntax budget ok
-- Each label is compared with all others while the file is read, in one C call.
-- 4000 times: goto l% ::l%::
return { api = 1 }
