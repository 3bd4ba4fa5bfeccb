"""Sends a mail with Python's own client, in TLS, where the server speaks first: smtp.py HOST:PORT"""
import smtplib
import ssl
import sys

host, port = sys.argv[1].split(':')
with smtplib.SMTP_SSL(host, int(port), local_hostname='client', context=ssl.create_default_context()) as s:
    print(s.noop(), s.sendmail('a@example.com', ['b@example.com', 'c@example.com'], 'Subject: test\r\n\r\n' + 'a line\r\n' * 1000))
